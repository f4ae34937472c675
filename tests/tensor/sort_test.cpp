// SPDX-License-Identifier: Apache-2.0
#include <skein/tensor/sort.hpp>

#include <algorithm>
#include <limits>

#include <catch2/catch.hpp>
#include "support.hpp"

using namespace tensor_test;

TEMPLATE_TEST_CASE("sort and argsort put values in either order", "", float, double, int, long) {
  using S = TestType;
  for (long n : {0L, 1L, 2L, 100L, 3001L}) {
    const auto v = values<S>(sk::dims(n), 1, -50, 50);
    auto expected = list(v);
    std::stable_sort(expected.begin(), expected.end());
    CHECK(list(sk::sort(v)) == expected);
    const auto order = sk::argsort(v);
    for (long i = 0; i < n; ++i) REQUIRE(v(order(i)) == expected[static_cast<std::size_t>(i)]);
    std::reverse(expected.begin(), expected.end());
    CHECK(list(sk::sort<sk::Order::descending>(v)) == expected);
    const auto falling = sk::argsort<sk::Order::descending>(v);
    for (long i = 0; i + 1 < n; ++i)
      REQUIRE((v(falling(i)) > v(falling(i + 1)) || (v(falling(i)) == v(falling(i + 1)) && falling(i) < falling(i + 1))));
  }
}

TEST_CASE("sorting is stable, takes expressions, and puts NaNs last") {
  const sk::Tensor<int, 1> v{3, 1, 2, 1, 3};
  CHECK(list(sk::argsort(v)) == std::vector<long>{1, 3, 2, 0, 4});
  CHECK(list(sk::argsort<sk::Order::descending>(v)) == std::vector<long>{0, 4, 2, 1, 3});
  CHECK(list(sk::sort(v * -1)) == std::vector<int>{-3, -3, -2, -1, -1});
  CHECK(list(v) == std::vector<int>{3, 1, 2, 1, 3});
  CHECK(list(sk::sort(sk::Tensor<int, 2>{{4, 0}, {1, 0}}(sk::all, 0))) == std::vector<int>{1, 4});
  const float none = std::numeric_limits<float>::quiet_NaN();
  const sk::Tensor<float, 1> w{none, 2, none, 1};
  CHECK(list(sk::argsort(w)) == std::vector<long>{3, 1, 0, 2});
  CHECK(list(sk::argsort<sk::Order::descending>(w)) == std::vector<long>{1, 3, 0, 2});
}
