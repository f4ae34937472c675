// SPDX-License-Identifier: Apache-2.0
#include <skein/data/synthetic_digits.hpp>

#include <cstdint>
#include <vector>

#include <skein/core/hash.hpp>
#include <skein/data/moments.hpp>
#include <skein/data/view.hpp>

#include <catch2/catch.hpp>

namespace sk = skein;
using sk::data::synthetic_digits;

namespace {
std::uint64_t hash_of(const sk::data::InMemory<std::uint8_t>& set) {
  return sk::hash_bytes(set.stored(0), static_cast<std::size_t>(set.size() * 784));
}
}  // namespace

TEST_CASE("synthetic digits are a pure function of seed and sample") {
  const auto a = synthetic_digits(300, {1}), b = synthetic_digits(200, {1}), c = synthetic_digits(200, {2});
  CHECK(a.sample_extents() == sk::Extents{3, {28, 28, 1}});
  CHECK(a.target() == sk::data::Target::labels(10));
  CHECK(hash_of(a.take(200)) == hash_of(b));
  CHECK(hash_of(b) != hash_of(c));
  CHECK(hash_of(b) == 5749986434172285840ull);  // the same with every compiler and instruction set
  for (int i = 0; i < 200; ++i) CHECK(a.label(i) == b.label(i));
}

TEST_CASE("every digit occurs about equally often, normalised, and no two images are alike") {
  const auto set = synthetic_digits(5000, {5});
  std::vector<int> counts(10, 0);
  for (int i = 0; i < 5000; ++i) ++counts[static_cast<std::size_t>(set.label(i))];
  for (const int n : counts) CHECK(std::abs(n - 500) < 100);
  const auto m = sk::data::moments(set);
  CHECK(std::abs(m.mean) < 0.03);
  CHECK(m.deviation == Approx(1).margin(0.03));
  for (int i = 1; i < 200; ++i) CHECK_FALSE(std::equal(set.stored(i), set.stored(i) + 784, set.stored(i - 1)));
}

TEST_CASE("the class means tell the digits apart, but far from perfectly: a network has something to learn") {
  const auto set = synthetic_digits(6000, {8});
  std::vector<double> means(7840, 0), counts(10, 0);
  for (int i = 0; i < 5000; ++i) {
    ++counts[static_cast<std::size_t>(set.label(i))];
    for (int p = 0; p < 784; ++p) means[static_cast<std::size_t>(set.label(i) * 784 + p)] += set.stored(i)[p];
  }
  int right = 0;
  for (int i = 5000; i < 6000; ++i) {
    double best = 1e30;
    int guess = -1;
    for (int d = 0; d < 10; ++d) {
      double distance = 0;
      for (int p = 0; p < 784; ++p) {
        const double e = set.stored(i)[p] - means[static_cast<std::size_t>(d * 784 + p)] / counts[static_cast<std::size_t>(d)];
        distance += e * e;
      }
      if (distance < best) best = distance, guess = d;
    }
    right += guess == set.label(i);
  }
  CHECK(right > 450);
  CHECK(right < 900);
}
