// SPDX-License-Identifier: Apache-2.0
#include <skein/data/permutation.hpp>

#include <algorithm>
#include <vector>

#include <catch2/catch.hpp>

#include "../support/larger.hpp"

namespace sk = skein;
using sk::data::Permutation;

static_assert(Permutation(1, {1}, 0)(0) == 0 && Permutation(10)(7) == 7);

namespace {
std::vector<std::int64_t> order_of(const Permutation& p) {
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < p.size(); ++i) order.push_back(p(i));
  return order;
}
bool bijective(std::vector<std::int64_t> order) {
  std::sort(order.begin(), order.end());
  for (std::size_t i = 0; i < order.size(); ++i)
    if (order[i] != static_cast<std::int64_t>(i)) return false;
  return true;
}
}  // namespace

TEST_CASE("every order is a permutation, for every size") {
  for (std::int64_t size = 1; size <= 300; ++size)
    for (std::int64_t epoch = 0; epoch < 5; ++epoch) REQUIRE(bijective(order_of(Permutation(size, {7}, epoch))));
  for (const std::int64_t size : {1000, 4096, 4097, 60000, 65536, 100003}) CHECK(bijective(order_of(Permutation(size, {7}, 3))));
  const Permutation huge(std::int64_t{1} << 61, {1}, 0);
  CHECK(huge(5) != huge(6));
  CHECK(huge(std::int64_t{1} << 60) < huge.size());
}

TEST_CASE("many positions at a time are those one by one") {
  for (const std::int64_t size : {1, 2, 31, 33, 100, 129, 1000, 4097, 80000})
    for (const std::int64_t first : {std::int64_t{0}, size / 3, size / 2}) {
      for (std::int64_t n :
           {std::int64_t{0}, std::int64_t{1}, std::int64_t{31}, std::int64_t{32}, std::int64_t{33}, std::int64_t{500}, size}) {
        n = std::min(n, size - first);
        std::vector<std::int64_t> at_once(static_cast<std::size_t>(n + 1), -7), one_by_one = at_once;
        for (const Permutation& p : {Permutation(size, {5}, 2), Permutation(size)}) {
          p.fill(first, n, at_once.data());
          for (std::int64_t i = 0; i < n; ++i) one_by_one[static_cast<std::size_t>(i)] = p(first + i);
          REQUIRE(at_once == one_by_one);
        }
      }
    }
}

TEST_CASE("the order is a pure function of seed, epoch and stream, and each of them matters") {
  const auto base = order_of(Permutation(1000, {1}, 0));
  CHECK(base == order_of(Permutation(1000, {1}, 0)));
  CHECK(base != order_of(Permutation(1000, {2}, 0)));
  CHECK(base != order_of(Permutation(1000, {1}, 1)));
  CHECK(base != order_of(Permutation(1000, {1}, 0, 1)));
  CHECK(Permutation(60000, {42}, 0)(0) == 22287);  // never changes: saved positions depend on it
  CHECK(Permutation(60000, {42}, 7)(59999) == 23260);
}

TEST_CASE("small orders are all about equally frequent") {
  const int size = GENERATE(2, 3, 4, 5, 6);
  int ways = 1;
  for (int i = 2; i <= size; ++i) ways *= i;
  const int each = 400, trials = each * ways;
  std::vector<int> counts(static_cast<std::size_t>(ways), 0);
  for (int t = 0; t < trials; ++t) {
    const auto order = order_of(Permutation(size, {99}, t));
    int rank = 0;
    for (int i = 0; i < size; ++i) {
      int smaller = 0;
      for (int j = i + 1; j < size; ++j) smaller += order[static_cast<std::size_t>(j)] < order[static_cast<std::size_t>(i)];
      rank = rank * (size - i) + smaller;
    }
    ++counts[static_cast<std::size_t>(rank)];
  }
  double chi = 0;
  for (const int c : counts) chi += (c - each) * static_cast<double>(c - each) / each;
  const double degrees = ways - 1;
  INFO("size " << size << ": chi squared " << chi << " at " << degrees << " degrees of freedom");
  CHECK(chi < degrees + 5 * std::sqrt(2 * degrees) + 5);
}

TEST_CASE("in large orders every sample goes anywhere and neighbours part") {
  constexpr int size = 1000, epochs = 3000, bins = 10;
  double worst = 0;
  std::vector<int> where(bins * bins, 0), gap(bins, 0);
  for (int e = 0; e < epochs; ++e) {
    const Permutation p(size, {3}, e);
    for (int i = 0; i < size; i += 100) ++where[static_cast<std::size_t>(i / 100 * bins + p(i) * bins / size)];
    for (int i = 0; i < 20; ++i) ++gap[static_cast<std::size_t>((p(i + 1) - p(i) + size) % size * bins / size)];
  }
  for (const int c : where) worst = support::larger(worst, c - epochs / 10.0);
  CHECK(worst < 5 * std::sqrt(epochs / 10.0));
  for (const int c : gap) CHECK(std::abs(c - epochs * 2.0) < 5 * std::sqrt(epochs * 2.0));
}
