// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <vector>

#include <skein/core/shape.hpp>
#include <skein/ops/cpu/batch_norm.hpp>
#include <skein/ops/cpu/group_normalization.hpp>
#include <skein/ops/normalization.hpp>

#include "support/apart.hpp"

using namespace skein;

namespace {
template <class Scalar> std::vector<Scalar> make(long n, double a, double shift = 0) {
  std::vector<Scalar> v;
  for (const double x : test::wave(n, a)) v.push_back(static_cast<Scalar>(x + shift));
  return v;
}

template <class Scalar> void columns_agree(long rows, long width) {
  const long n = rows * width, period = ops::column_period(width);
  const auto x = make<Scalar>(n, 0.7, 3), dy = make<Scalar>(n, 1.1);
  std::vector<Scalar> mean = make<Scalar>(width, 0.3), a = make<Scalar>(width, 0.4), b = make<Scalar>(width, 0.5),
                      c = make<Scalar>(width, 0.6);
  for (auto* v : {&mean, &a, &b, &c})
    for (long i = width; i < period; ++i) v->push_back((*v)[static_cast<std::size_t>(i - width)]);
  const ops::Columns<Scalar> m{x.data(), rows, width};
  const auto w = static_cast<std::size_t>(width);
  std::vector<double> s1(w, 9), q1(w, 9), s2(w, 9), q2(w, 9);
  std::vector<Scalar> scratch(static_cast<std::size_t>(period)), y1(x.size(), 9), y2 = y1;
  const double size = static_cast<double>(rows) * 16;
  ops::cpu::column_moments(m, s1.data(), q1.data(), scratch.data());
  ops::reference::column_moments(m, s2.data(), q2.data());
  CHECK(test::first_apart<Scalar>(s1, s2, 8, size) == -1);
  CHECK(test::first_apart<Scalar>(q1, q2, 8, size) == -1);
  ops::cpu::column_products(m, dy.data(), mean.data(), s1.data(), q1.data());
  ops::reference::column_products(m, dy.data(), mean.data(), s2.data(), q2.data());
  CHECK(test::first_apart<Scalar>(s1, s2, 8, size) == -1);
  CHECK(test::first_apart<Scalar>(q1, q2, 8, size) == -1);
  ops::cpu::column_affine(m, mean.data(), a.data(), b.data(), y1.data());
  ops::reference::column_affine(m, mean.data(), a.data(), b.data(), y2.data());
  CHECK(test::first_apart<Scalar>(y1, y2, 8, 4) == -1);
  ops::cpu::column_combine(m, dy.data(), mean.data(), a.data(), b.data(), c.data(), y1.data());
  ops::reference::column_combine(m, dy.data(), mean.data(), a.data(), b.data(), c.data(), y2.data());
  CHECK(test::first_apart<Scalar>(y1, y2, 8, 4) == -1);
}

template <class Scalar> void rows_agree(long rows, long width) {
  const ops::RowShape s{rows, width, row_pitch(width)};
  const auto x = make<Scalar>(rows * s.pitch, 0.7, 3), dy = make<Scalar>(rows * s.pitch, 1.1),
             weight = make<Scalar>(width, 0.4, 1), bias = make<Scalar>(width, 0.5);
  std::vector<Scalar> y1(x.size(), 9), y2 = y1, saved1(static_cast<std::size_t>(2 * rows)), saved2 = saved1;
  ops::row_normalize<Cpu>(s, x.data(), weight.data(), bias.data(), 1e-5, y1.data(), saved1.data());
  ops::reference::row_normalize(s, x.data(), weight.data(), bias.data(), 1e-5, y2.data(), saved2.data());
  double steepest = 1;  // what a rounding of the mean is multiplied by
  for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r)
    steepest = std::max(steepest, static_cast<double>(saved2[2 * r + 1]));
  CHECK(test::first_apart<Scalar>(y1, y2, 64, steepest) == -1);
  CHECK(test::first_apart<Scalar>(saved1, saved2, 16, steepest * steepest) == -1);
  const auto w = static_cast<std::size_t>(width);
  std::vector<Scalar> scratch(2 * w), dw1(w, 1), dw2 = dw1, db1(w, 2), db2 = db1;
  ops::row_normalize_backward<Cpu>(s, x.data(), dy.data(), weight.data(), saved2.data(), y1.data(), dw1.data(), db1.data(),
                                   scratch.data());
  ops::reference::row_normalize_backward(s, x.data(), dy.data(), weight.data(), saved2.data(), y2.data(), dw2.data(), db2.data());
  const double size = static_cast<double>(rows);
  CHECK(test::first_apart<Scalar>(y1, y2, 64) == -1);
  CHECK(test::first_apart<Scalar>(dw1, dw2, 16, size) == -1);
  CHECK(test::first_apart<Scalar>(db1, db2, 16, size) == -1);
  const auto before = dw1;  // without dx: only the gradients are added to
  ops::row_normalize_backward<Cpu>(s, x.data(), dy.data(), weight.data(), saved2.data(), static_cast<Scalar*>(nullptr),
                                   dw1.data(), db1.data(), scratch.data());
  CHECK((before != dw1) == (rows > 0));
}
}  // namespace

TEST_CASE("A period is whole rows and whole vectors", "[ops]") {
  STATIC_REQUIRE(ops::column_period(16) == 16);
  STATIC_REQUIRE(ops::column_period(6) == 48);
  STATIC_REQUIRE(ops::column_period(1) == 16);
  STATIC_REQUIRE(ops::column_period(100) == 400);
  STATIC_REQUIRE(ops::column_period(512) == 512);
}

TEST_CASE("Column passes in vectors agree with plain loops", "[ops]") {
  for (const long width : {1L, 2L, 3L, 6L, 8L, 16L, 20L, 33L, 64L})
    for (const long rows : {0L, 1L, 7L, 16L, 17L, 300L}) {
      INFO("rows " << rows << ", width " << width);
      columns_agree<float>(rows, width);
      columns_agree<double>(rows, width);
    }
}

TEST_CASE("Batch and group normalization of a million columns do not take them from the stack", "[ops]") {
  constexpr long n = 1'000'000;
  const std::vector<float> x = make<float>(2 * n, 0.7, 3);
  std::vector<float> weight(n, 1), bias(n), y(2 * n), saved(2), work(static_cast<std::size_t>(ops::cpu::batch_norm_workspace(n)));
  ops::cpu::GroupNormalize<n, 1, float>::forward({x.data(), 2, n}, weight.data(), bias.data(), 1e-5, y.data(), saved.data(),
                                                 work.data());
  CHECK(std::abs(saved[0] - 3) < 0.1f);
  std::vector<float> dweight(n), dbias(n), dx(2 * n);
  ops::cpu::GroupNormalize<n, 1, float>::backward({x.data(), 2, n}, x.data(), weight.data(), saved.data(), dx.data(),
                                                  dweight.data(), dbias.data(), work.data());
  CHECK(dbias[7] == x[7] + x[n + 7]);
  using Norm = ops::cpu::BatchNorm<static_cast<int>(n), n, float>;
  STATIC_REQUIRE(std::is_trivially_destructible_v<Norm::Sums>);  // nor from the heap
  ops::BatchNormCall<float> call;
  call.workspace = work.data();
  Norm::Sums sums(call);
  ops::cpu::column_moments(ops::Columns<float>{x.data(), 2, n}, sums.first(), sums.second(), work.data());
  CHECK(sums.first()[n - 1] == static_cast<double>(x[n - 1]) + static_cast<double>(x[2 * n - 1]));
}

TEST_CASE("Row passes in vectors agree with plain loops", "[ops]") {
  for (const long width : {2L, 3L, 8L, 16L, 21L, 64L})
    for (const long rows : {0L, 1L, 130L}) {
      INFO("rows " << rows << ", width " << width);
      rows_agree<float>(rows, width);
      rows_agree<double>(rows, width);
    }
}
