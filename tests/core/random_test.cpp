// SPDX-License-Identifier: Apache-2.0
#include <skein/core/random.hpp>

#include <array>
#include <cmath>
#include <set>

#include <catch2/catch.hpp>

namespace sk = skein;

// Known answers of Random123's kat_vectors for philox4x32-10.
TEST_CASE("Philox gives the published words") {
  const auto zeros = sk::Philox::at(0, 0, 0);
  CHECK(zeros.word[0] == 0x6627e8d5u);
  CHECK(zeros.word[1] == 0xe169c58du);
  CHECK(zeros.word[2] == 0xbc57ac4cu);
  CHECK(zeros.word[3] == 0x9b00dbd8u);
  const auto ones = sk::Philox::at(~0ull, ~0ull, ~0ull);
  CHECK(ones.word[0] == 0x408f276du);
  CHECK(ones.word[1] == 0x41c83b0eu);
  CHECK(ones.word[2] == 0xa20bc7c6u);
  CHECK(ones.word[3] == 0x6d5451fdu);
  // counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0
  const auto pi = sk::Philox::at(0x299f31d0a4093822ull, 0x0370734413198a2eull, 0x85a308d3243f6a88ull);
  CHECK(pi.word[0] == 0xd16cfe09u);
  CHECK(pi.word[1] == 0x94fdccebu);
  CHECK(pi.word[2] == 0x5001e420u);
  CHECK(pi.word[3] == 0x24126ea1u);
}

TEST_CASE("random values are pure functions, known at compile time") {
  static_assert(sk::random_uniform(1, 2, 3) == sk::random_uniform(1, 2, 3));
  static_assert(sk::random_key(1, 2) != sk::random_key(1, 3));
  static_assert(sk::random_key(1, 2) != sk::random_key(2, 2));
  static_assert(sk::random_word(7, 0, 5) == sk::Philox::at(7, 0, 1).word[1]);
  CHECK(sk::random_normal(1, 2, 3) == sk::random_normal(1, 2, 3));
}

TEST_CASE("uniform values fill [0, 1) evenly") {
  constexpr int n = 200000;
  std::array<int, 16> bins{};
  double sum = 0;
  for (int i = 0; i < n; ++i) {
    const float u = sk::random_uniform(42, 1, static_cast<std::uint64_t>(i));
    REQUIRE(u >= 0.f);
    REQUIRE(u < 1.f);
    ++bins[static_cast<std::size_t>(u * 16)];
    sum += u;
  }
  CHECK(std::abs(sum / n - 0.5) < 5 * std::sqrt(1.0 / 12 / n));
  double chi = 0;
  for (int b : bins) chi += (b - n / 16.0) * (b - n / 16.0) / (n / 16.0);
  CHECK(chi < 44);  // 15 degrees of freedom, p = 1e-4
}

TEST_CASE("normal values have the moments of a normal distribution") {
  constexpr int n = 200000;
  double sum = 0, square = 0, fourth = 0, neighbors = 0, last = 0;
  for (int i = 0; i < n; ++i) {
    const double x = sk::random_normal(42, 1, static_cast<std::uint64_t>(i));
    REQUIRE(std::isfinite(x));
    sum += x;
    square += x * x;
    fourth += x * x * x * x;
    neighbors += x * last;
    last = x;
  }
  CHECK(std::abs(sum / n) < 5 / std::sqrt(n));
  CHECK(std::abs(square / n - 1) < 5 * std::sqrt(2.0 / n));
  CHECK(std::abs(fourth / n - 3) < 5 * std::sqrt(96.0 / n));
  CHECK(std::abs(neighbors / n) < 5 / std::sqrt(n));  // both halves of a Box-Muller pair are used
}

TEST_CASE("random_below reaches every value below n and no other, evenly") {
  std::array<int, 7> count{};
  for (std::uint64_t i = 0; i < 70000; ++i) {
    const auto k = sk::random_below(3, 4, i, 7);
    REQUIRE(k < 7);
    ++count[k];
  }
  for (int c : count) CHECK(std::abs(c - 10000) < 500);
  CHECK(sk::random_below(3, 4, 5, 1) == 0);
  std::set<std::uint64_t> large;
  for (std::uint64_t i = 0; i < 100; ++i) large.insert(sk::random_below(1, 1, i, 4000000000ull));
  CHECK(large.size() == 100);
  CHECK(*large.rbegin() < 4000000000ull);
}

TEST_CASE("streams and keys do not share numbers") {
  int same = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    same += sk::random_word(1, 0, i) == sk::random_word(1, 1, i);
    same += sk::random_word(1, 0, i) == sk::random_word(2, 0, i);
    same += sk::random_word(1, 0, i) == sk::random_word(1, 0, i + 1);
  }
  CHECK(same <= 1);
}
