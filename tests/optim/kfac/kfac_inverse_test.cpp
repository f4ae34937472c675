// SPDX-License-Identifier: Apache-2.0
// What divides by a factor: its inverse or eigenvectors, made again in double where single precision fails, and refused where
// that fails too.
#include <skein/optim/kfac/kfac_inverse.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include <catch2/catch.hpp>

#include "../../support/naive_curvature.hpp"

namespace optim = skein::optim;
using optim::KfacInverse;

namespace {
constexpr long a = 6, g = 3;
/// Symmetric, with eigenvalues of 0.1 and more.
template <class Scalar> std::vector<Scalar> factor(long n, double wave) {
  std::vector<Scalar> m(static_cast<std::size_t>(n * n));
  for (long i = 0; i < n; ++i)
    for (long j = 0; j < n; ++j) {
      double sum = i == j ? 0.1 : 0;
      for (long k = 0; k < n; ++k)
        sum += std::sin(wave * static_cast<double>(i * n + k + 1)) * std::sin(wave * static_cast<double>(j * n + k + 1));
      m[static_cast<std::size_t>(i * n + j)] = static_cast<Scalar>(sum);
    }
  return m;
}
template <class Scalar> struct Inverse {
  std::vector<Scalar> matrix, values;
  bool found = false;
  Inverse(KfacInverse how, long n, double damping, const std::vector<Scalar>& f)
      : matrix(f.size()), values(static_cast<std::size_t>(n)) {
    optim::KfacWork<Scalar> work;
    found = optim::invert_factor(how, n, damping, f.data(), matrix.data(), values.data(), work);
  }
};
}  // namespace

TEMPLATE_TEST_CASE("Kfac divides a gradient by both factors as one dense system does", "[optim]", float, double) {
  using Scalar = TestType;
  const auto fa = factor<Scalar>(a, 0.9), fg = factor<Scalar>(g, 0.7);
  std::vector<Scalar> gradient(static_cast<std::size_t>(a * skein::row_pitch(g)));
  std::vector<double> dense;
  for (long i = 0; i < a; ++i)
    for (long j = 0; j < g; ++j) {
      const double v = std::cos(0.37 * static_cast<double>(i * g + j));
      gradient[static_cast<std::size_t>(i * skein::row_pitch(g) + j)] = static_cast<Scalar>(v);
      dense.push_back(v);
    }
  const std::vector<double> da(fa.begin(), fa.end()), dg(fg.begin(), fg.end());
  const auto divided = [&](KfacInverse how, double of_a, double of_g, double of_product) {
    const Inverse<Scalar> ia(how, a, of_a, fa), ig(how, g, of_g, fg);
    REQUIRE((ia.found && ig.found));
    optim::KfacWork<Scalar> work;
    work.product.resize(static_cast<std::size_t>(a * g));
    std::vector<Scalar> to(static_cast<std::size_t>(a * g));
    optim::divide_by_factors<Scalar>(how, of_product, {a, ia.matrix.data(), ia.values.data()},
                                     {g, ig.matrix.data(), ig.values.data()}, gradient.data(),
                                     gradient.data() + (a - 1) * skein::row_pitch(g), work, to.data());
    return to;
  };
  const auto check = [&](const std::vector<Scalar>& ours, const test::NaiveDamping& damping) {
    const std::vector<double> expected = test::divide_naively(damping, da, dg, dense);
    for (std::size_t i = 0; i < expected.size(); ++i)
      CHECK(static_cast<double>(ours[i]) == Approx(expected[i]).margin(std::is_same_v<Scalar, double> ? 1e-11 : 2e-4).epsilon(0));
  };
  check(divided(KfacInverse::eigen, 0, 0, 0.05), {.of_product = 0.05});
  check(divided(KfacInverse::eigen, 0.2, 0.3, 0), {.of_a = 0.2, .of_g = 0.3});
  check(divided(KfacInverse::cholesky, 0.2, 0.3, 0), {.of_a = 0.2, .of_g = 0.3});
}

TEMPLATE_TEST_CASE("Eigenvectors stand for a factor all but few of whose eigenvalues are the same", "[optim]", float, double) {
  using Scalar = TestType;
  constexpr long rank = 3, wide = 40;
  const double damping = 0.3, margin = std::is_same_v<Scalar, double> ? 1e-7 : 2e-3;
  // 0.5 I and three much longer directions: the mean of the other eigenvalues is each of them.
  const auto made = [&](long n) {
    std::vector<Scalar> m(static_cast<std::size_t>(n * n));
    for (long i = 0; i < n; ++i)
      for (long j = 0; j < n; ++j) {
        double sum = i == j ? 0.5 : 0;
        for (long k = 1; k <= rank; ++k)
          sum += 1e3 * std::sin(0.9 * static_cast<double>(k * i)) * std::sin(0.9 * static_cast<double>(k * j));
        m[static_cast<std::size_t>(i * n + j)] = static_cast<Scalar>(sum);
      }
    return m;
  };
  const auto check = [&](long columns, bool of_g) {  // (wide, columns)
    const std::vector<Scalar> fa = made(wide), fg = made(columns);
    std::vector<Scalar> va(rank * wide + 1), vg(static_cast<std::size_t>(of_g ? rank * columns + 1 : columns * columns)), none(1);
    optim::KfacWork<Scalar> work;
    REQUIRE(optim::invert_by_eigenvectors(rank, wide, damping, fa.data(), va.data(), work));
    if (of_g) REQUIRE(optim::invert_by_eigenvectors(rank, columns, damping, fg.data(), vg.data(), work));
    else REQUIRE(optim::invert_factor(KfacInverse::cholesky, columns, damping, fg.data(), vg.data(), none.data(), work));
    std::vector<Scalar> gradient(static_cast<std::size_t>(wide * skein::row_pitch(columns)));
    std::vector<double> dense;
    for (long i = 0; i < wide; ++i)
      for (long j = 0; j < columns; ++j) {
        dense.push_back(std::cos(0.37 * static_cast<double>(i * columns + j)));
        gradient[static_cast<std::size_t>(i * skein::row_pitch(columns) + j)] = static_cast<Scalar>(dense.back());
      }
    const auto size = static_cast<std::size_t>(wide * columns);
    std::vector<Scalar> to(size, Scalar(7));
    work.product.resize(size);
    optim::divide_by_inverses<Scalar>({wide, va.data(), nullptr, rank}, {columns, vg.data(), nullptr, of_g ? rank : 0},
                                      gradient.data(), gradient.data() + (wide - 1) * skein::row_pitch(columns), 0, columns, work,
                                      to.data());
    const std::vector<double> expected =
        test::divide_naively({.of_a = damping, .of_g = damping}, {fa.begin(), fa.end()}, {fg.begin(), fg.end()}, dense);
    for (std::size_t i = 0; i < size; ++i) REQUIRE(static_cast<double>(to[i]) == Approx(expected[i]).margin(margin).epsilon(0));
  };
  check(2, false);
  check(17, true);
}

TEST_CASE("Eigenvectors of a factor that is all zeros, or has fewer directions than they are, or is not finite", "[optim]") {
  optim::KfacWork<float> work;
  std::vector<float> zeros(400), one = zeros, inverse(2 * 20 + 1);
  one[0] = 4;
  for (const bool is_one : {false, true}) {
    REQUIRE(optim::invert_by_eigenvectors(2, 20, 0.5, is_one ? one.data() : zeros.data(), inverse.data(), work));
    std::vector<float> x(20, 1.0f), scratch;
    optim::multiply_rows(2, 20, inverse.data(), 1, x.data(), scratch);
    CHECK(x[0] == Approx(is_one ? 1 / 4.5 : 2).epsilon(1e-5));
    for (std::size_t i = 1; i < 20; ++i) CHECK(x[i] == Approx(2).epsilon(1e-5));
  }
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    one[3] = bad;
    CHECK_FALSE(optim::invert_by_eigenvectors(2, 20, 0.5, one.data(), inverse.data(), work));
  }
}

TEST_CASE("Blocks of 2 x 2 and 1 x 1 are inverted with the damping on their diagonals, and those without an inverse are told",
          "[optim]") {
  const auto check = [](auto scalar, double epsilon) {
    using Scalar = decltype(scalar);
    const std::vector<Scalar> blocks{4, 1, 1, 2, 0, 0, 0, 0}, single{3, 0};
    std::vector<Scalar> inverse(8), of_single(2);
    REQUIRE(optim::invert_blocks(2, 2, 0.5, blocks.data(), inverse.data()));
    const double determinant = 4.5 * 2.5 - 1,
                 expected[] = {2.5 / determinant, -1 / determinant, -1 / determinant, 4.5 / determinant, 2, 0, 0, 2};
    for (std::size_t i = 0; i < 8; ++i) CHECK(static_cast<double>(inverse[i]) == Approx(expected[i]).epsilon(epsilon));
    REQUIRE(optim::invert_blocks(2, 1, 0.5, single.data(), of_single.data()));
    CHECK(static_cast<double>(of_single[0]) == Approx(1 / 3.5).epsilon(epsilon));
    CHECK(static_cast<double>(of_single[1]) == Approx(2).epsilon(epsilon));
    for (const Scalar bad : {std::numeric_limits<Scalar>::quiet_NaN(), std::numeric_limits<Scalar>::infinity(), Scalar(-5)}) {
      const std::vector<Scalar> refused{1, 0, 0, bad};
      CHECK_FALSE(optim::invert_blocks(1, 2, 0.5, refused.data(), inverse.data()));
    }
  };
  check(double{}, 1e-14);
  check(float{}, 1e-6);
}

TEST_CASE("A block that rounding made indefinite is inverted as the singular one that it was", "[optim]") {
  // Of gradients (300, 300.0001) in each sample: 90000, 90000.03 and 90000.06 are 90000, 90000.03125 and 90000.0625 in float,
  // where the next number is 0.0078 away; one more beside the diagonal is a determinant of -1406, with a damping of 0.003 of
  // -866.
  const float beside = std::nextafter(90000.03125f, 1e9f);
  const std::vector<float> block{90000, beside, beside, 90000.0625f};
  std::vector<float> inverse(4);
  REQUIRE(optim::invert_blocks(1, 2, 0.003, block.data(), inverse.data()));
  // Along (1, 1) the moments are 180000, across it there is but the damping.
  CHECK(inverse[0] + inverse[1] == Approx(0).margin(1e-3 / 0.003));
  CHECK(inverse[0] - inverse[1] == Approx(1 / 0.003).epsilon(1e-3));
  for (const bool negative : {false, true}) {
    const float b = negative ? -7.0f : 7.0f;
    const std::vector<float> far{4, b, b, 9};  // at most 6 is beside 4 and 9
    REQUIRE(optim::invert_blocks(1, 2, 0.5, far.data(), inverse.data()));
    const double determinant = 0.5 * 13.5;
    CHECK(inverse[0] == Approx(9.5 / determinant));
    CHECK(inverse[1] == Approx((negative ? 6 : -6) / determinant));
    CHECK(inverse[3] == Approx(4.5 / determinant));
  }
}

TEST_CASE("A factor that has no inverse in single precision is inverted in double", "[optim]") {
  // 1 + 1e-9 is 1 in float: the second pivot is 0. In double the inverse is (1, -1; -1, 1) / 2e-9 but for one part in 1e9.
  const std::vector<float> ones{1, 1, 1, 1};
  optim::KfacWork<float> work;
  std::vector<float> once{1, 1, 1, 1};
  REQUIRE_FALSE(optim::detail::divide_factor(KfacInverse::cholesky, 2, 1e-9, once.data(), once.data(), work.lapack));
  const Inverse<float> inverse(KfacInverse::cholesky, 2, 1e-9, ones);
  REQUIRE(inverse.found);
  for (std::size_t i = 0; i < 4; ++i) CHECK(inverse.matrix[i] == Approx(i % 3 == 0 ? 5e8 : -5e8).epsilon(1e-6));
}

TEST_CASE("A factor that has no inverse, not even in double, is refused", "[optim]") {
  const auto how = GENERATE(KfacInverse::eigen, KfacInverse::cholesky);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    CHECK_FALSE(Inverse<float>(how, 2, 0.1, {1, bad, bad, 1}).found);
    CHECK_FALSE(Inverse<double>(how, 2, 0.1, {1, static_cast<double>(bad), static_cast<double>(bad), 1}).found);
  }
  CHECK(Inverse<float>(how, 2, 0.1, {1, 0.5f, 0.5f, 1}).found);
  CHECK_FALSE(Inverse<float>(KfacInverse::cholesky, 2, 0.1, {1, 2, 2, 1}).found);  // an eigenvalue of -1
}

TEST_CASE("Eigenvalues that rounding made negative count as zero", "[optim]") {
  const Inverse<double> inverse(KfacInverse::eigen, 2, 0.1, {1, 1.5, 1.5, 1});  // -0.5 and 2.5
  REQUIRE(inverse.found);
  CHECK(inverse.values[0] == Approx(0.1));
  CHECK(inverse.values[1] == Approx(2.6));
}
