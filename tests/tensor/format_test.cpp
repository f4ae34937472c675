// SPDX-License-Identifier: Apache-2.0
#include <skein/tensor/format.hpp>

#include <vector>

#include <catch2/catch.hpp>
#include <fmt/ranges.h>
#include "support.hpp"

using namespace tensor_test;

TEST_CASE("fmt prints tensors, views and expressions") {
  const sk::Tensor<float, 2> a{{1, 2.5}, {-3, 4}};
  CHECK(fmt::format("{}", a) == sk::to_text(a));
  CHECK(fmt::format("<{:.2f}>", a(1)) == "<[-3.00, 4.00]>");
  CHECK(fmt::format("{:.1f} {}", a(0) * 2, 7) == "[2.0, 5.0] 7");
  CHECK(fmt::format("{}", std::vector<int>{1, 2}) == "[1, 2]");  // by <fmt/ranges.h>, which takes tensors for ranges, too
}
