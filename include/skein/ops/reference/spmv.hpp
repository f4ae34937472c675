// SPDX-License-Identifier: Apache-2.0
// Products of sparse matrices by plain loops, in double: what the others are compared with.
#pragma once
#include "../../tensor/csr_view.hpp"

namespace skein::inline SKEIN_ABI::ops::reference {

/// y = A x
template <class M, class Index, class S> void spmv(const CsrView<M, Cpu, Index>& a, const S* x, S* y) {
  for (long i = 0; i < a.rows; ++i) {
    double total = 0;
    for (long k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
      double weight = 1;
      if constexpr (!CsrView<M, Cpu, Index>::pattern) weight = static_cast<double>(a.values[k]);
      total += weight * static_cast<double>(x[a.indices[k]]);
    }
    y[i] = static_cast<S>(total);
  }
}

/// C = A B with n columns; rows of B and C lie ldb and ldc apart.
template <class M, class Index, class S>
void spmm(const CsrView<M, Cpu, Index>& a, const S* b, long ldb, S* c, long ldc, long n) {
  for (long i = 0; i < a.rows; ++i)
    for (long j = 0; j < n; ++j) {
      double total = 0;
      for (long k = a.offsets[i]; k < a.offsets[i + 1]; ++k) {
        double weight = 1;
        if constexpr (!CsrView<M, Cpu, Index>::pattern) weight = static_cast<double>(a.values[k]);
        total += weight * static_cast<double>(b[static_cast<long>(a.indices[k]) * ldb + j]);
      }
      c[i * ldc + j] = static_cast<S>(total);
    }
}

}  // namespace skein::inline SKEIN_ABI::ops::reference
