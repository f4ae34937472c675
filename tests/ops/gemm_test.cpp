// SPDX-License-Identifier: Apache-2.0
// The matrix product of run-time sizes against three plain loops: both back ends, every way to store the operands.
#include <catch2/catch.hpp>

#include <array>
#include <limits>
#include <vector>

#include <skein/ops/cpu/gemm_onednn.hpp>
#include <skein/ops/gemm.hpp>

#include "../support/close.hpp"

namespace sk = skein;
using sk::ops::Transpose;

namespace {

template <class S> struct Matrix {  // rows padded with NaN: what reads a gap is seen
  long rows, columns, pitch;
  std::vector<S> values;
  Matrix(long r, long c, double step)
      : rows(r), columns(c), pitch(c + 3), values(static_cast<std::size_t>(r * pitch), std::numeric_limits<S>::quiet_NaN()) {
    for (long i = 0; i < r; ++i)
      for (long j = 0; j < c; ++j) at(i, j) = static_cast<S>(std::sin(step * static_cast<double>(i * c + j + 1)));
  }
  S& at(long i, long j) { return values[static_cast<std::size_t>(i * pitch + j)]; }
  S at(long i, long j) const { return values[static_cast<std::size_t>(i * pitch + j)]; }
};

using Sizes = std::array<long, 3>;

/// The number of values that differ from the naive product.
template <class S, class Gemm> long wrong_values(Gemm gemm, Sizes s, bool ta, bool tb, S alpha, S beta) {
  const auto [m, n, k] = s;
  const Matrix<S> a(ta ? k : m, ta ? m : k, 0.7), b(tb ? n : k, tb ? k : n, 1.1);
  Matrix<S> c(m, n, 0.3);
  const Matrix<S> before = c;
  if (beta == S(0)) std::fill(c.values.begin(), c.values.end(), std::numeric_limits<S>::quiet_NaN());  // must not be read
  gemm(ta ? Transpose::yes : Transpose::no, tb ? Transpose::yes : Transpose::no, m, n, k, alpha, a.values.data(), a.pitch,
       b.values.data(), b.pitch, beta, c.values.data(), c.pitch);
  long wrong = 0;
  for (long i = 0; i < m; ++i)
    for (long j = 0; j < c.pitch; ++j) {
      if (j >= n) {
        wrong += !std::isnan(c.at(i, j));  // gaps of C are not written
        continue;
      }
      double sum = 0;
      for (long p = 0; p < k; ++p)
        sum += static_cast<double>(ta ? a.at(p, i) : a.at(i, p)) * static_cast<double>(tb ? b.at(j, p) : b.at(p, j));
      const double want = static_cast<double>(alpha) * sum +
                          (beta == S(0) ? 0.0 : static_cast<double>(beta) * static_cast<double>(before.at(i, j)));
      wrong += !support::close(c.at(i, j), static_cast<S>(want), support::Roundings::arithmetic, static_cast<double>(k + 1));
    }
  return wrong;
}

template <class S> struct Face {
  template <class... Args> void operator()(Args... args) const { sk::ops::gemm<sk::Cpu, S>(args...); }
};
template <class S> struct Reference {
  template <class... Args> void operator()(Args... args) const { sk::ops::reference::gemm(args...); }
};

template <class S, class Gemm> void check(Sizes s, S alpha = S(1), S beta = S(0)) {
  for (bool ta : {false, true})
    for (bool tb : {false, true}) {
      INFO("m, n, k " << s[0] << ", " << s[1] << ", " << s[2] << " A^T " << ta << " B^T " << tb << " alpha " << alpha << " beta "
                      << beta);
      REQUIRE(wrong_values<S>(Gemm{}, s, ta, tb, alpha, beta) == 0);
    }
}
template <class S, class Gemm> void check_all() {
  const long small[] = {1, 3, 7, 8, 10, 16, 17};
  for (long m : small)
    for (long n : small)
      for (long k : small) check<S, Gemm>({m, n, k});
  for (Sizes s : {Sizes{5, 84, 120}, Sizes{128, 10, 84}, Sizes{120, 129, 65}, Sizes{2, 512, 130}}) {
    check<S, Gemm>(s);
    check<S, Gemm>(s, S(-0.5), S(2));
  }
}

}  // namespace

TEST_CASE("gemm: the face agrees with three loops", "[gemm]") {
  check_all<float, Face<float>>();
  check_all<double, Face<double>>();
}

TEST_CASE("gemm: the reference agrees with three loops", "[gemm]") {
  check_all<float, Reference<float>>();
  check_all<double, Reference<double>>();
}

TEST_CASE("gemm: nothing to sum gives beta C; nothing to write is nothing", "[gemm]") {
  check<float, Face<float>>({20, 17, 0});
  check<float, Face<float>>({20, 17, 0}, 1.0f, 3.0f);
  check<float, Face<float>>({3, 4, 5}, 0.0f, 3.0f);
  check<double, Face<double>>({3, 4, 0}, 1.0, 3.0);
  std::vector<float> one(102 * 16, 1.0f), none(one.size(), std::numeric_limits<float>::quiet_NaN());
  sk::ops::gemm<sk::Cpu>(Transpose::no, Transpose::yes, 16, 102, 15, 0.0f, one.data(), 15, one.data(), 15, 0.0f, none.data(),
                         102);
  CHECK(none == std::vector<float>(none.size(), 0.0f));  // with alpha and beta 0 C is not read, which oneDNN's did in this shape
  sk::ops::gemm<sk::Cpu, float>(Transpose::no, Transpose::no, 0, 5, 5, 1, nullptr, 5, nullptr, 5, 0, nullptr, 5);
  sk::ops::gemm<sk::Cpu, float>(Transpose::no, Transpose::no, 5, 0, 5, 1, nullptr, 5, nullptr, 1, 0, nullptr, 1);
}

#if SKEIN_WITH_ONEDNN
TEST_CASE("a product by oneDNN leaves the caller's number of OpenMP threads as it is") {
  if (!omp_set_num_threads || !omp_get_max_threads) return;  // an oneDNN without OpenMP
  const int before = omp_get_max_threads();
  omp_set_num_threads(3);
  const std::vector<float> a(4, 1), b(4, 1);
  std::vector<float> c(4);
  sk::ops::cpu::sgemm(Transpose::no, Transpose::no, 2, 2, 2, 1, a.data(), 2, b.data(), 2, 0, c.data(), 2);
  CHECK(omp_get_max_threads() == 3);
  CHECK(c == std::vector<float>(4, 2));
  omp_set_num_threads(before);
}
#endif
