// SPDX-License-Identifier: Apache-2.0
#include <skein/tensor/print.hpp>

#include <cmath>
#include <limits>
#include <sstream>

#include <catch2/catch.hpp>
#include "support.hpp"

using namespace tensor_test;

TEST_CASE("tensors, views and expressions print alike") {
  sk::Tensor<float, 2> a{{1, 2.5}, {-3, 4}};
  CHECK(sk::to_text(a) == "[[1, 2.5],\n [-3, 4]]");
  CHECK(sk::to_text(a.transpose()) == "[[1, -3],\n [2.5, 4]]");
  CHECK(sk::to_text(a(0) * 2) == "[2, 5]");
  CHECK(sk::to_text(a > 2) == "[[false, true],\n [false, true]]");
  std::ostringstream out;
  out << a(1) << sk::Tensor<int, 3>{{{1}, {2}}, {{3}, {4}}};
  CHECK(out.str() == "[-3, 4][[[1],\n  [2]],\n\n [[3],\n  [4]]]");
  CHECK(sk::to_text(a(1), ".2f") == "[-3.00, 4.00]");
  CHECK(sk::to_text(sk::arange(3), "3") == "[  0,   1,   2]");
  CHECK(sk::to_text(a(0) / 3) == "[0.33333334, 0.8333333]");
  CHECK(sk::to_text(sk::Tensor<std::uint64_t, 1>{~std::uint64_t{0}}, "5") == "[18446744073709551615]");
  CHECK(sk::to_text(sk::Tensor<int, 1>{-1}, "5") == "[   -1]");
  CHECK(sk::to_text(sk::Tensor<double, 1>{1e300}, ".300f").size() == 2 + 301 + 1 + 300);
  const float none = std::numeric_limits<float>::quiet_NaN();
  CHECK(sk::to_text(sk::Tensor<float, 1>{std::copysign(none, -1.f), none}) == "[nan, nan]");  // 0 / 0 has the sign on x86
  CHECK(sk::to_text(sk::Tensor<float, 1>{std::copysign(none, -1.f), -2}, ".1f") == "[nan, -2.0]");
  CHECK(text_of([&] { sk::to_text(a, "s"); }) == "to_text: 's' is no format of these values");
  for (const char* wrong : {"*n", "1.2.3f", "5-3f", "..f", "3.f2"})
    CHECK(text_of([&] { sk::to_text(a, wrong); }).find("is no format") != std::string::npos);
  CHECK(sk::to_text(a(0), "+06.1f") == "[+001.0, +002.5]");
}

TEST_CASE("long axes are shortened to their ends") {
  CHECK(sk::to_text(sk::arange(9)) == "[0, 1, 2, ..., 6, 7, 8]");
  CHECK(sk::to_text(sk::arange(8)) == "[0, 1, 2, 3, 4, 5, 6, 7]");
  CHECK(sk::to_text(sk::zeros<int>(0)) == "[]");
}
