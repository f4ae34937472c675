// SPDX-License-Identifier: Apache-2.0
#include <skein/ops/matmul.hpp>

#include <catch2/catch.hpp>
#include "../tensor/support.hpp"

using namespace tensor_test;
using sk::all;
using sk::range;

TEMPLATE_TEST_CASE("mm and mv equal plain loops, for dense, padded, transposed and stepped operands", "", float, double) {
  using S = TestType;
  const auto big = values<S>(sk::dims(40, 60), 1);
  const auto other = values<S>(sk::dims(60, 50), 2);
  const auto check = [](const auto& a, const auto& b) {
    const auto c = mm(a, b);
    REQUIRE(c.shape() == sk::dims(a.shape()[0], b.shape()[1]));
    for (long i = 0; i < c.extent(0); ++i)
      for (long j = 0; j < c.extent(1); ++j) {
        double total = 0;
        for (long k = 0; k < a.shape()[1]; ++k) total += static_cast<double>(a(i, k)) * b(k, j);
        REQUIRE(support::close(c(i, j), static_cast<S>(total), support::Roundings::sum, 20));
      }
    const auto x = b(all, 0);
    const auto y = mv(a, x);
    for (long i = 0; i < c.extent(0); ++i) REQUIRE(support::close(y(i), c(i, 0), support::Roundings::sum, 20));
  };
  check(big, other);
  check(big(range(0, 7), range(0, 13)), other(range(0, 13), range(3, 30)));
  check(other.transpose(), big.transpose());
  check(other(all, range(0, 20)).transpose(), big(range(5, 9)).transpose());
  check(big(range(0, 40, 2), range(0, 60, 3)), other(range(0, 20), range(0, 50, 7)));
  check(big.reverse(0), other);
  check(big(range(0, 1)), other(all, range(0, 1)));
  check(big(all, range(0, 1)), other(range(0, 1)));
}

TEST_CASE("products with expressions, of nothing, and of what does not fit") {
  const sk::Tensor<float, 2> a{{1, 2}, {3, 4}};
  CHECK(list(mm(a + 1, a * 2)) == std::vector<float>{22, 32, 38, 56});
  CHECK(list(mv(a * 2, a(0) + a(1))) == std::vector<float>{32, 72});
  const sk::Tensor<float, 2> none(sk::dims(2, 0));
  CHECK(list(mm(none, none.transpose())) == std::vector<float>{0, 0, 0, 0});
  CHECK(text_of([&] {
          mm(a, sk::Tensor<float, 2>{{1, 2, 3}});
        }) == "mm: shapes (2, 2) and (1, 3) do not multiply: the columns of the first must be the rows of the second");
  sk::Tensor<float, 2> c(sk::dims(2, 2));
  CHECK(text_of([&] {
          sk::mm_into<float, sk::Cpu>(c.view().reverse(0), a.view(), a.view());
        }).find("its target, with dense rows, each behind the one before") != std::string::npos);
  CHECK(text_of([&] { sk::mm_into<float, sk::Cpu>(c.view(), c.view(), a.view()); }) ==
        "mm_into: the target overlaps a matrix that is multiplied: give it memory of its own");
  CHECK_THROWS_AS((sk::mm_into<float, sk::Cpu>(c.view(), a.view(), c.view().transpose())), sk::ArgumentError);
  sk::Tensor<float, 2> wide{{1, 2, 0, 0, 5}, {3, 4, 0, 0, 5}};  // side by side they may lie
  const auto left = wide(all, range(0, 2)), right = wide(all, range(2, 4));
  sk::mm_into<float, sk::Cpu>(right, left, left.transpose());
  CHECK(list(wide) == std::vector<float>{1, 2, 5, 11, 5, 3, 4, 11, 25, 5});
  CHECK_THROWS_AS((sk::mm_into<float, sk::Cpu>(right, wide(all, range(1, 3)), a.view())), sk::ArgumentError);
  CHECK_THROWS_AS((sk::mm_into<float, sk::Cpu>(left, wide(all, range(1, 3)), a.view())), sk::ArgumentError);
  CHECK(text_of([&] {
          mv(a, sk::Tensor<float, 1>{1, 2, 3});
        }) == "mv: shapes (2, 2) and (3) do not multiply: the columns of the matrix must be the length of the vector");
}
