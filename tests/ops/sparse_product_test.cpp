// SPDX-License-Identifier: Apache-2.0
#include <skein/ops/sparse_product.hpp>
#include <skein/tensor/create.hpp>

#include <vector>

#include <catch2/catch.hpp>
#include "sparse_cases.hpp"

using namespace tensor_test;
using sk::range;

TEMPLATE_TEST_CASE("sparse times dense is dense times dense", "", float, double) {
  using S = TestType;
  for (long rows : {1L, 5L, 40L})
    for (long columns : {1L, 13L, 3000L})
      for (double share : {0., 0.1, 1.}) {
        const auto m = thinned<S>(rows, columns, share, 1);
        const auto a = sk::Csr<S>::from_dense(m);
        const sk::Tensor<S, 2> ones(sk::cast<S>(m != S(0)));
        const auto x = values<S>(sk::dims(columns), 2);
        const double magnitude = 0.2 * static_cast<double>(columns);
        REQUIRE(near(mv(a, x), mv(m, x), magnitude));
        REQUIRE(near(mv(a.without_values(), x), mv(ones, x), magnitude));
        REQUIRE(near(mv(a.without_values().template with_index<std::uint16_t>(), x), mv(ones, x), magnitude));
        REQUIRE(near(mv(a.template with_index<std::int64_t>(), x), mv(m, x), magnitude));
        REQUIRE(near(mv(a, x * 2 - 1), mv(m, sk::eval(x * 2 - 1)), magnitude));
        REQUIRE(near(mv(a, x.reverse(0)), mv(m, x.reverse(0)), magnitude));
        sk::Tensor<S, 1> y(sk::dims(rows));
        sk::ops::reference::spmv(a.view(), x.data(), y.data());
        REQUIRE(near(mv(a, x), y, magnitude));
        for (long n : {1L, 64L, 70L}) {
          const auto b = values<S>(sk::dims(columns, n + 3), 3);
          const auto window = b(sk::all, range(1, n + 1));
          REQUIRE(near(mm(a, window), mm(m, window), magnitude));
          REQUIRE(near(mm(a.without_values(), b.reverse(1)), mm(ones, b.reverse(1)), magnitude));
          sk::Tensor<S, 2> c(sk::dims(rows, n));
          sk::ops::reference::spmm(a.view(), window.data, b.extent(1), c.data(), n, n);
          REQUIRE(near(mm(a, window), c, magnitude));
        }
      }
}

TEST_CASE("workers share the rows of a sparse product by their entries") {
  auto m = thinned<float>(300, 200, 0.1, 1);
  m(7).assign(1.f);  // one long row
  const auto a = sk::Csr<float>::from_dense(m);
  const auto x = values<float>(sk::dims(200), 2);
  const auto b = values<float>(sk::dims(200, 5), 3);
  const auto y = mv(a, x);
  const auto c = mm(a, b);
  for (int count : {1, 2, 3, 7}) {
    sk::Workers workers(count);
    sk::Tensor<float, 1> vector(sk::dims(300));
    sk::Tensor<float, 2> matrix(sk::dims(300, 5));
    workers.run([&](sk::Worker& w) {
      mv_into(vector.view(), a, x, w);
      mm_into(matrix.view(), a, b, w);
    });
    CHECK(list(vector) == list(y));
    CHECK(list(matrix) == list(c));
  }
  const std::int32_t offsets[] = {0, 10, 10, 10, 10, 20};
  CHECK(sk::ops::cpu::balanced_row(offsets, 5L, 0, 2) == 0);
  CHECK(sk::ops::cpu::balanced_row(offsets, 5L, 1, 2) == 3);
  CHECK(sk::ops::cpu::balanced_row(offsets, 5L, 2, 2) == 5);
}

TEST_CASE("a float row of many entries does not lose what is small") {
  constexpr long n = 3'000'000;
  sk::Tensor<std::int32_t, 1> offsets{0, n};
  const sk::Csr<void> a(1, n, std::move(offsets), sk::arange<std::int32_t>(n));
  sk::Tensor<float, 1> x(sk::dims(n));
  x = 0.1f;
  CHECK(support::close(mm(a, x.reshape(n, 1))(0, 0), static_cast<float>(n * static_cast<double>(0.1f)), support::Roundings::sum));
  CHECK(support::close(mv(a, x)(0), static_cast<float>(n * static_cast<double>(0.1f)), support::Roundings::sum));
}

TEST_CASE("products that do not fit say so") {
  const auto a = sk::Csr<float>::from_dense(sk::eye<float>(3));
  CHECK(text_of([&] { mv(a, sk::ones<float>(4)); }) ==
        "mv: shapes (3, 3) and (4) do not multiply: the columns of the matrix must be the length of the vector");
  CHECK(text_of([&] { mm(a, sk::ones<float>(2, 3)); }) ==
        "mm: shapes (3, 3) and (2, 3) do not multiply: the columns of the first must be the rows of the second");
  sk::Tensor<float, 1> y(sk::dims(4));
  CHECK(text_of([&] { mv_into(y.view(), a, sk::ones<float>(3)); }).find("mv_into: shapes (3) and (4) differ") == 0);
  sk::Tensor<float, 1> both{1, 2, 3, 4, 5};  // a vector that is read and written is no product
  CHECK(text_of([&] { mv_into(both(sk::range(2)), a, both(sk::range(0, 3))); }) ==
        "mv_into: the target overlaps the vector that is multiplied: give it memory of its own");
  CHECK_THROWS_AS(mv_into(both(sk::range(0, 3)), a, both(sk::range(2))), sk::ArgumentError);
  sk::Tensor<float, 1> apart(sk::dims(6));
  apart(sk::range(3)) = both(sk::range(2));
  mv_into(apart(sk::range(0, 3)), a, apart(sk::range(3)));  // side by side they may lie
  CHECK(list(apart) == std::vector<float>{3, 4, 5, 3, 4, 5});
  sk::Tensor<float, 2> matrix = sk::ones<float>(3, 4);
  CHECK(text_of([&] { mm_into(matrix.view(), a, matrix.view()); }) ==
        "mm_into: the target overlaps a matrix that is multiplied: give it memory of its own");
  mm_into(matrix(sk::all, sk::range(0, 2)), a, matrix(sk::all, sk::range(2)));
  CHECK(sum(matrix) == 12);
  CHECK(mv(sk::Csr<float>(), sk::zeros<float>(0)).size() == 0);
  CHECK(list(mv(sk::Csr<float>::from_dense(sk::zeros<float>(2, 0)), sk::zeros<float>(0))) == std::vector<float>{0, 0});
}
