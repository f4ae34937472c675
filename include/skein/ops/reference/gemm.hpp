// SPDX-License-Identifier: Apache-2.0
// Matrix product in plain loops: two rows of C by four steps of k at a time, in blocks that stay in the first-level cache, so
// that compilers make vectors of the innermost loop. The oracle of the tests, and what runs where no library is there.
//
//     A (m, k), B (k, n), C (m, n); lda, ldb, ldc scalars from row to row of them; i, r a row of C, j a column of it, s, t steps
//     of k
#pragma once
#include "../../core/config.hpp"
#include "../transpose.hpp"

namespace skein::inline SKEIN_ABI::ops::reference {

namespace detail {
inline constexpr long gemm_k = 64, gemm_n = 128;  // a block of B

/// C(rows 1 or 2, n) += a B, for up to four steps of k; a(r, s) at a[4 r + s], zeros behind the last step.
template <int Rows, class Scalar> inline void gemm_steps(const Scalar* a, const Scalar* __restrict b, long pitch, long steps,
                                                         Scalar* __restrict c, long ldc, long n) {
  const Scalar* __restrict b1 = steps > 1 ? b + pitch : b;
  const Scalar* __restrict b2 = steps > 2 ? b + 2 * pitch : b;
  const Scalar* __restrict b3 = steps > 3 ? b + 3 * pitch : b;
  for (long j = 0; j < n; ++j) {
    for (int r = 0; r < Rows; ++r) {
      Scalar sum = a[4 * r] * b[j];
      if (steps > 1) sum += a[4 * r + 1] * b1[j];
      if (steps > 2) sum += a[4 * r + 2] * b2[j];
      if (steps > 3) sum += a[4 * r + 3] * b3[j];
      c[r * ldc + j] += sum;
    }
  }
}
}  // namespace detail

/// C = alpha op(A) op(B) + beta C; see ops/gemm.hpp.
template <class Scalar> void gemm(Transpose ta, Transpose tb, long m, long n, long k, Scalar alpha, const Scalar* A, long lda,
                                  const Scalar* B, long ldb, Scalar beta, Scalar* C, long ldc) {
  for (long i = 0; i < m; ++i)
    for (long j = 0; j < n; ++j) C[i * ldc + j] = beta == Scalar(0) ? Scalar(0) : beta * C[i * ldc + j];
  if (alpha == Scalar(0)) return;
  const bool a_flipped = ta == Transpose::yes, b_flipped = tb == Transpose::yes;
  alignas(64) Scalar transposed[detail::gemm_k * detail::gemm_n];  // a block of B^T, where B is given transposed
  for (long k0 = 0; k0 < k; k0 += detail::gemm_k) {
    const long kn = k - k0 < detail::gemm_k ? k - k0 : detail::gemm_k;
    for (long j0 = 0; j0 < n; j0 += detail::gemm_n) {
      const long jn = n - j0 < detail::gemm_n ? n - j0 : detail::gemm_n;
      const Scalar* block = B + k0 * ldb + j0;
      long pitch = ldb;
      if (b_flipped) {
        for (long j = 0; j < jn; ++j)
          for (long s = 0; s < kn; ++s) transposed[s * detail::gemm_n + j] = B[(j0 + j) * ldb + k0 + s];
        block = transposed;
        pitch = detail::gemm_n;
      }
      for (long i = 0; i < m; i += 2) {
        const long rows = m - i < 2 ? 1 : 2;
        for (long s = 0; s < kn; s += 4) {
          const long steps = kn - s < 4 ? kn - s : 4;
          Scalar a[8] = {};
          for (long r = 0; r < rows; ++r)
            for (long t = 0; t < steps; ++t)
              a[4 * r + t] = alpha * (a_flipped ? A[(k0 + s + t) * lda + i + r] : A[(i + r) * lda + k0 + s + t]);
          Scalar* c = C + i * ldc + j0;
          if (rows == 2) detail::gemm_steps<2>(a, block + s * pitch, pitch, steps, c, ldc, jn);
          else detail::gemm_steps<1>(a, block + s * pitch, pitch, steps, c, ldc, jn);
        }
      }
    }
  }
}

}  // namespace skein::inline SKEIN_ABI::ops::reference
