// SPDX-License-Identifier: Apache-2.0
// The matrix product on the GPU against three loops in double: every way to store the operands, padded rows, offsets that break
// the alignment, accumulation, nothing to sum.
#include <skein/ops/cuda/gemm.hpp>

#include <catch2/catch.hpp>

#include <array>
#include <cmath>
#include <limits>

#include <skein/device/cuda/memory.hpp>

#include "../../support/close.hpp"
#include "../../support/on_device.hpp"

namespace sk = skein;
using sk::ops::Transpose;
using support::OnDevice;

namespace {

template <class S> struct Matrix {  // rows padded with NaN: what reads a gap is seen
  long rows, columns, pitch, offset;
  std::vector<S> values;
  Matrix(long r, long c, double step, long first)
      : rows(r), columns(c), pitch(c + 3), offset(first),
        values(static_cast<std::size_t>(first + r * pitch), std::numeric_limits<S>::quiet_NaN()) {
    for (long i = 0; i < r; ++i)
      for (long j = 0; j < c; ++j) at(i, j) = static_cast<S>(std::sin(step * static_cast<double>(i * c + j + 1)));
  }
  S& at(long i, long j) { return values[static_cast<std::size_t>(offset + i * pitch + j)]; }
  S at(long i, long j) const { return values[static_cast<std::size_t>(offset + i * pitch + j)]; }
};
using Sizes = std::array<long, 3>;

template <class S> long wrong_values(Sizes s, bool ta, bool tb, S alpha, S beta, long offset) {
  const auto [m, n, k] = s;
  const Matrix<S> a(ta ? k : m, ta ? m : k, 0.7, offset), b(tb ? n : k, tb ? k : n, 1.1, offset);
  Matrix<S> c(m, n, 0.3, offset);
  const Matrix<S> before = c;
  if (beta == S(0)) std::fill(c.values.begin(), c.values.end(), std::numeric_limits<S>::quiet_NaN());  // must not be read
  OnDevice<S> A(a.values), B(b.values), C(c.values);
  sk::ops::gemm<sk::Cuda>(ta ? Transpose::yes : Transpose::no, tb ? Transpose::yes : Transpose::no, m, n, k, alpha,
                          A.data() + offset, a.pitch, B.data() + offset, b.pitch, beta, C.data() + offset, c.pitch);
  c.values = C.values();
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
template <class S> void check(Sizes s, S alpha = S(1), S beta = S(0), long offset = 0) {
  for (bool ta : {false, true})
    for (bool tb : {false, true}) {
      INFO("m, n, k " << s[0] << ", " << s[1] << ", " << s[2] << " A^T " << ta << " B^T " << tb << " alpha " << alpha << " beta "
                      << beta << " offset " << offset);
      REQUIRE(wrong_values<S>(s, ta, tb, alpha, beta, offset) == 0);
    }
}

}  // namespace

TEMPLATE_TEST_CASE("gemm on Cuda agrees with three loops", "[gemm]", float, double) {
  using S = TestType;
  const long small[] = {1, 3, 8, 17};
  for (long m : small)
    for (long n : small)
      for (long k : small) check<S>({m, n, k});
  for (Sizes s : {Sizes{5, 84, 120}, Sizes{128, 10, 84}, Sizes{120, 129, 65}, Sizes{2, 512, 130}}) {
    check<S>(s);
    check<S>(s, S(-0.5), S(2));
    check<S>(s, S(1), S(1), 1);  // arrays that begin anywhere
  }
}
TEST_CASE("gemm on Cuda: nothing to sum gives beta C; nothing to write is nothing", "[gemm]") {
  check<float>({20, 17, 0});
  check<float>({20, 17, 0}, 1.0f, 3.0f);
  check<float>({20, 17, 0}, 1.0f, 1.0f);
  check<float>({3, 4, 5}, 0.0f, 3.0f);
  check<double>({3, 4, 0}, 1.0, 3.0);
  sk::ops::gemm<sk::Cuda, float>(Transpose::no, Transpose::no, 0, 5, 5, 1, nullptr, 5, nullptr, 5, 0, nullptr, 5);
  sk::ops::gemm<sk::Cuda, float>(Transpose::no, Transpose::no, 5, 0, 5, 1, nullptr, 5, nullptr, 1, 0, nullptr, 1);
}
