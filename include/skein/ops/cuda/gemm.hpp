// SPDX-License-Identifier: Apache-2.0
// The matrix product of run-time sizes on the GPU, by cuBLASLt: what sk::mm and ops::gemm call for tensors on Cuda.
#pragma once
#include "../../device/cuda/launch.hpp"
#include "../gemm.hpp"
#include "product.hpp"

namespace skein::inline SKEIN_ABI::ops {

namespace kernel {
/// c(i / n, i % n) *= factor; with factor 0 what was there is not read.
template <class Scalar> struct ScaleRows {
  Scalar* c;
  long n, pitch;
  Scalar factor;
  constexpr void operator()(long i) const {
    Scalar& at = c[i / n * pitch + i % n];
    at = factor == Scalar(0) ? Scalar(0) : at * factor;
  }
};
}  // namespace kernel

template <> struct GemmKernels<Cuda> {
  template <class Scalar> static void run(Transpose ta, Transpose tb, long m, long n, long k, Scalar alpha, const Scalar* A,
                                          long lda, const Scalar* B, long ldb, Scalar beta, Scalar* C, long ldc) {
    if (k <= 0 || alpha == Scalar(0)) {  // nothing is summed
      if (beta != Scalar(1)) skein::cuda::for_each(m * n, kernel::ScaleRows<Scalar>{C, n, ldc, beta});
      return;
    }
    constexpr cudaDataType_t type = cublas::type_of<Scalar>;
    cublas::multiply({.ta = ta,
                      .tb = tb,
                      .m = m,
                      .n = n,
                      .k = k,
                      .a = A,
                      .b = B,
                      .d = C,
                      .lda = lda,
                      .ldb = ldb,
                      .ldd = ldc,
                      .type = type,
                      .result = type,
                      .alpha = static_cast<double>(alpha),
                      .beta = static_cast<double>(beta)});
  }
};

}  // namespace skein::inline SKEIN_ABI::ops
