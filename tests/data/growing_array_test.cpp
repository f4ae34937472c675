// SPDX-License-Identifier: Apache-2.0
#include <skein/data/growing_array.hpp>

#include <cstdint>
#include <vector>

#include <catch2/catch.hpp>

using skein::data::GrowingArray;

namespace {
template <class T> std::vector<T> values_of(const GrowingArray<T>& array) { return {array.data(), array.data() + array.size()}; }
}  // namespace

TEST_CASE("a growing array is a vector of every size: of a few bytes, of pages, and on the way from one to the other and back") {
  GrowingArray<std::int32_t> array;
  std::vector<std::int32_t> expected;
  CHECK(array.empty());
  for (std::int32_t i = 0; i < 200'000; ++i) {  // 800 KB
    array.push_back(i * 7);
    expected.push_back(i * 7);
  }
  CHECK(values_of(array) == expected);
  const std::vector<std::int32_t> more(300'000, 5);
  array.append(more.data(), more.size());
  array.append(nullptr, 0);
  expected.insert(expected.end(), more.begin(), more.end());
  CHECK(values_of(array) == expected);
  for (const std::size_t size : {400'000, 33'000, 32'000, 100, 1, 0}) {  // 128 KiB are 32768
    array.shrink(size);
    expected.resize(size);
    CHECK(values_of(array) == expected);
  }
  array.push_back(3);
  CHECK(values_of(array) == std::vector<std::int32_t>{3});
}

TEST_CASE("copies of a growing array are apart, and a moved one is empty") {
  GrowingArray<double> first;
  for (int i = 0; i < 40'000; ++i) first.push_back(i);
  GrowingArray<double> copy = first;
  copy[0] = -1;
  CHECK(first[0] == 0);
  copy = first;
  CHECK(values_of(copy) == values_of(first));
  GrowingArray<double> taken = std::move(first);
  CHECK(first.empty());
  CHECK(values_of(taken) == values_of(copy));
  taken.clear();
  taken.resize(2);
  taken[0] = taken[1] = 4;
  CHECK(values_of(taken) == std::vector<double>{4, 4});
}
