// SPDX-License-Identifier: Apache-2.0
// Normalised columns with a ReLU behind them, in vectors and as plain loops; moments of rows that come in parts.
#include <catch2/catch.hpp>

#include <vector>

#include <skein/ops/cpu/rectified_normalization.hpp>

#include "support/apart.hpp"

using namespace skein;

namespace {
template <class Scalar> std::vector<Scalar> make(long n, double a, double shift = 0) {
  std::vector<Scalar> v;
  for (const double x : test::wave(n, a)) v.push_back(static_cast<Scalar>(x + shift));
  return v;
}

template <class Scalar> struct Case {
  long rows, width, n = rows * width;
  std::vector<Scalar> x = make<Scalar>(n, 0.7, 0.3), dy = make<Scalar>(n, 1.1), addend = make<Scalar>(n, 0.9);
  std::vector<std::vector<Scalar>> k;
  std::size_t w = static_cast<std::size_t>(width);
  std::vector<double> s1 = std::vector<double>(w, 9), q1 = s1, s2 = s1, q2 = s1;
  std::vector<Scalar> y1 = std::vector<Scalar>(static_cast<std::size_t>(n), 9), y2 = y1;

  Case(long r, long c) : rows(r), width(c) {
    for (int i = 0; i < 6; ++i) {
      auto v = make<Scalar>(width, 0.3 + 0.1 * i);
      for (long j = width; j < ops::column_period(width); ++j) v.push_back(v[static_cast<std::size_t>(j - width)]);
      k.push_back(v);
    }
  }
  ops::Columns<Scalar> m() const { return {x.data(), rows, width}; }
  ops::ColumnAffine<Scalar> affine() const { return {k[0].data(), k[1].data(), k[2].data()}; }
  ops::ColumnCombine<Scalar> combine() const { return {k[0].data(), k[3].data(), k[4].data(), k[5].data()}; }
  void same_values() { CHECK(test::first_apart<Scalar>(y1, y2, 8, 4) == -1); }
  void same_sums() {
    const double size = static_cast<double>(rows) * 16;
    CHECK(test::first_apart<Scalar>(s1, s2, 8, size) == -1);
    CHECK(test::first_apart<Scalar>(q1, q2, 8, size) == -1);
  }
};

template <class Scalar> void agree(long rows, long width) {
  INFO(rows << " rows of " << width);
  Case<Scalar> c(rows, width);
  for (const Scalar* addend : {static_cast<const Scalar*>(nullptr), static_cast<const Scalar*>(c.addend.data())}) {
    ops::cpu::rectified_affine(c.m(), c.affine(), addend, c.y1.data());
    ops::reference::rectified_affine(c.m(), c.affine(), addend, c.y2.data());
    c.same_values();
  }
  const std::vector<Scalar> y = c.y1;
  ops::cpu::masked_products(c.m(), c.affine().mean, c.dy.data(), y.data(), c.y1.data(), c.s1.data(), c.q1.data());
  ops::reference::masked_products(c.m(), c.affine().mean, c.dy.data(), y.data(), c.y2.data(), c.s2.data(), c.q2.data());
  CHECK(c.y1 == c.y2);
  c.same_sums();
  ops::cpu::rectified_products(c.m(), c.affine(), c.dy.data(), c.s1.data(), c.q1.data());
  ops::reference::rectified_products(c.m(), c.affine(), c.dy.data(), c.s2.data(), c.q2.data());
  c.same_sums();
  ops::cpu::rectified_combine(c.m(), c.affine(), c.dy.data(), c.combine(), c.y1.data());
  ops::reference::rectified_combine(c.m(), c.affine(), c.dy.data(), c.combine(), c.y2.data());
  c.same_values();
}
}  // namespace

TEST_CASE("Rectified columns agree with plain loops", "[ops]") {
  for (const long width : {1L, 3L, 6L, 16L, 20L, 32L, 64L, 100L})
    for (const long rows : {0L, 1L, 7L, 64L, 1030L}) {
      agree<float>(rows, width);
      agree<double>(rows, width);
    }
}

TEST_CASE("What passed the ReLU in forward passes it in backward: no value is on both sides", "[ops]") {
  Case<float> c(513, 20);
  ops::cpu::rectified_affine(c.m(), c.affine(), static_cast<const float*>(nullptr), c.y1.data());
  std::vector<float> ones(c.x.size(), 1), zeros(c.k[0].size(), 0), unit(c.k[0].size(), 1);
  ops::cpu::rectified_combine(c.m(), c.affine(), ones.data(), {c.affine().mean, unit.data(), zeros.data(), zeros.data()},
                              c.y2.data());
  for (std::size_t i = 0; i < c.x.size(); ++i) REQUIRE((c.y1[i] > 0) == (c.y2[i] == 1));
}

TEST_CASE("Moments of rows in parts are those of all rows", "[ops]") {
  Case<float> c(1024 * 3, 16);
  std::vector<float> guess(16);
  ops::cpu::column_moments(c.m(), c.s1.data(), c.q1.data(), guess.data());
  ops::cpu::MomentsOfColumns<float> parts{c.s2.data(), c.q2.data(), guess.data(), 16};
  parts.begin({c.x.data(), 1024, 16});
  for (int i = 0; i < 3; ++i) parts.add({c.x.data() + i * 1024 * 16, 1024, 16});
  parts.finish();
  CHECK(c.s1 == c.s2);  // the same bits, where parts are whole blocks
  CHECK(c.q1 == c.q2);
}
