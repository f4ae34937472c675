// SPDX-License-Identifier: Apache-2.0
// Face of the matrix product with sizes known at run time, row-major: dispatches on the device tag. Layers whose sizes are
// known at compile time go through ops/dense.hpp.
#pragma once
#include <type_traits>

#include "../device/device.hpp"
#include "cpu/gemm_onednn.hpp"
#include "reference/gemm.hpp"
#include "transpose.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// The product on one device; a device without its header is a compile error that names this.
template <class Device> struct GemmKernels;

template <> struct GemmKernels<Cpu> {
  template <class Scalar> static void run(Transpose ta, Transpose tb, long m, long n, long k, Scalar alpha, const Scalar* A,
                                          long lda, const Scalar* B, long ldb, Scalar beta, Scalar* C, long ldc) {
#if SKEIN_WITH_ONEDNN
    if constexpr (std::is_same_v<Scalar, float>)  // below, the call costs more than the product; with alpha 0 oneDNN's reads C
      if (m * n * k > 16 * 16 * 16 && alpha != 0) return cpu::sgemm(ta, tb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
#endif
    reference::gemm(ta, tb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
  }
};

/// C = alpha op(A) op(B) + beta C: op(A) is (m, k), op(B) is (k, n), C is (m, n); rows lie lda, ldb, ldc scalars apart, those of
/// the arrays as they are stored. With beta 0, C is not read. C must not overlap A or B. Runs on the calling thread, or on its
/// stream.
template <class Device, class Scalar> void gemm(Transpose a, Transpose b, long m, long n, long k, Scalar alpha, const Scalar* A,
                                                long lda, const Scalar* B, long ldb, Scalar beta, Scalar* C, long ldc) {
  if (m > 0 && n > 0) GemmKernels<Device>::run(a, b, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
}

}  // namespace skein::inline SKEIN_ABI::ops
