// SPDX-License-Identifier: Apache-2.0
// The inverse of a symmetric positive definite matrix. By Schur complements, whose work is matrix products, down to blocks that
// LAPACK's Cholesky takes: the reference LAPACK runs at a hundredth of a core's products. Golub and Van Loan, "Matrix
// Computations", section 3.2.
#pragma once
#include <algorithm>
#include <type_traits>

#include "cpu/lapack.hpp"
#include "gemm.hpp"

namespace skein::inline SKEIN_ABI::ops {

namespace detail {
inline constexpr long cholesky_block = 48;

/// Inverts a block in place. Its rows are `pitch` scalars apart; scratch: n * n. The result may differ from its transpose by
/// rounding. False where it is not positive definite.
template <class Scalar> bool invert_block(long n, Scalar* a, long pitch, Scalar* scratch, cpu::LapackWork<Scalar>& work) {
  if (n <= cholesky_block) {
    for (long i = 0; i < n; ++i) std::copy_n(a + i * pitch, n, scratch + i * n);
    if (!cpu::invert_symmetric(n, scratch, work)) return false;
    for (long i = 0; i < n; ++i) std::copy_n(scratch + i * n, n, a + i * pitch);
    return true;
  }
  const long h = n / 2 / 16 * 16, r = n - h;  // [A B; B^T D]
  Scalar *const b = a + h, *const lower = a + h * pitch, *const d = lower + h;
  Scalar *const w = scratch, *const t = w + h * r;  // A^-1 B, and that by the inverse of D - B^T A^-1 B
  constexpr auto no = Transpose::no, yes = Transpose::yes;
  if (!invert_block(h, a, pitch, scratch, work)) return false;
  gemm<Cpu>(no, no, h, r, h, Scalar(1), a, pitch, b, pitch, Scalar(0), w, r);
  gemm<Cpu>(yes, no, r, r, h, Scalar(-1), b, pitch, w, r, Scalar(1), d, pitch);
  if (!invert_block(r, d, pitch, t, work)) return false;
  gemm<Cpu>(no, no, h, r, r, Scalar(1), w, r, d, pitch, Scalar(0), t, r);
  gemm<Cpu>(no, yes, h, h, r, Scalar(1), t, r, w, r, Scalar(1), a, pitch);
  for (long i = 0; i < h; ++i)
    for (long j = 0; j < r; ++j) b[i * pitch + j] = lower[j * pitch + i] = -t[i * r + j];
  return true;
}
}  // namespace detail

/// The inverse of a symmetric positive definite matrix (n, n), dense, in its place. False where it is not that: `a` is spoilt. On
/// the calling thread.
template <class Scalar> bool invert_symmetric(long n, Scalar* a, cpu::LapackWork<Scalar>& work) {
  if (!std::is_same_v<Scalar, float> || n <= 2 * detail::cholesky_block) return cpu::invert_symmetric(n, a, work);
  work.numbers.resize(std::max(work.numbers.size(), static_cast<std::size_t>(2 * n * n)));
  if (!detail::invert_block(n, a, n, work.numbers.data(), work)) return false;
  Scalar sum = 0;  // NaN where one of them is not finite
  for (long i = 0; i < n; ++i)
    for (long j = 0; j <= i; ++j) {
      a[i * n + j] = a[j * n + i] = (a[i * n + j] + a[j * n + i]) / 2;
      sum += a[i * n + j] * Scalar(0);
    }
  return sum == 0;
}

}  // namespace skein::inline SKEIN_ABI::ops
