// SPDX-License-Identifier: Apache-2.0
// Single-precision matrix product by oneDNN's sgemm, on the calling thread alone. oneDNN's teams are OpenMP's; the library has
// workers of its own, so each of them tells OpenMP before a call that it wants no team, and afterwards what the user's own code
// on this thread had asked for. Only where SKEIN_WITH_ONEDNN is set.
#pragma once
#include "../../core/config.hpp"

#if SKEIN_WITH_ONEDNN
#include <oneapi/dnnl/dnnl.h>

#include "../../core/error.hpp"
#include "../transpose.hpp"

// Weak: an oneDNN without OpenMP brings no such functions.
extern "C" void omp_set_num_threads(int) __attribute__((weak));
extern "C" int omp_get_max_threads() __attribute__((weak));

namespace skein::inline SKEIN_ABI::ops::cpu {

/// While it lives, what the calling thread asks of oneDNN is this thread's alone: no OpenMP team.
class NoOmpTeam {
 public:
  NoOmpTeam() : before_(omp_set_num_threads && omp_get_max_threads ? omp_get_max_threads() : 1) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~NoOmpTeam() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  NoOmpTeam(const NoOmpTeam&) = delete;
  NoOmpTeam& operator=(const NoOmpTeam&) = delete;

 private:
  int before_;
};

/// C = alpha op(A) op(B) + beta C in float; see ops/gemm.hpp.
inline void sgemm(Transpose ta, Transpose tb, long m, long n, long k, float alpha, const float* A, long lda, const float* B,
                  long ldb, float beta, float* C, long ldc) {
  const NoOmpTeam alone;
  const dnnl_status_t status = dnnl_sgemm(ta == Transpose::yes ? 'T' : 'N', tb == Transpose::yes ? 'T' : 'N', m, n, k, alpha, A,
                                          lda, B, ldb, beta, C, ldc);
  if (status != dnnl_success)
    throw DeviceError(text("gemm: oneDNN's sgemm refuses the call (status {})", static_cast<int>(status)));
}

}  // namespace skein::inline SKEIN_ABI::ops::cpu
#endif
