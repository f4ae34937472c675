// SPDX-License-Identifier: Apache-2.0
// Products of sparse matrices on the host, bound by the memory of the indices: scalar loads into eight chains of additions, which
// beat gathers; chains are added up in double every so often, so that the error does not grow with a row's length.
#pragma once
#include "../../core/config.hpp"
#include "../../tensor/csr_view.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

/// The first row of share `index` of `count`: shares have about as many entries and rows.
template <class Offset> constexpr long balanced_row(const Offset* offsets, long rows, int index, int count) {
  if (index <= 0) return 0;
  if (index >= count) return rows;
  const double wanted = (static_cast<double>(offsets[rows]) + static_cast<double>(rows)) * index / count;
  long low = 0, high = rows;
  while (low < high) {
    const long middle = (low + high) / 2;
    if (static_cast<double>(offsets[middle]) + static_cast<double>(middle) < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

/// The sum over entries [k, end) of a row.
template <class M, class Index, class S> SKEIN_ALWAYS_INLINE S sparse_dot(const Index* indices, const M* values, long k, long end, const S* x) {
  constexpr bool pattern = std::is_void_v<M>;
  const auto term = [&](long e) {
    if constexpr (pattern) return x[indices[e]];
    else return values[e] * x[indices[e]];
  };
  constexpr long chunk = 1024;
  double total = 0;
  while (end - k >= 8) {
    const long stop = end - k >= chunk ? k + chunk : k + (end - k) / 8 * 8;
    S a0 = 0, a1 = 0, a2 = 0, a3 = 0, a4 = 0, a5 = 0, a6 = 0, a7 = 0;
    for (; k < stop; k += 8) {
      a0 += term(k);
      a1 += term(k + 1);
      a2 += term(k + 2);
      a3 += term(k + 3);
      a4 += term(k + 4);
      a5 += term(k + 5);
      a6 += term(k + 6);
      a7 += term(k + 7);
    }
    total += static_cast<double>(((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7)));
  }
  for (; k < end; ++k) total += static_cast<double>(term(k));
  return static_cast<S>(total);
}

/// Rows [begin, end) of y = A x.
template <class M, class Index, class S> void spmv(const CsrView<M, Cpu, Index>& a, const S* x, S* y, long begin, long end) {
  for (long i = begin; i < end; ++i) y[i] = sparse_dot(a.indices, a.values, static_cast<long>(a.offsets[i]), static_cast<long>(a.offsets[i + 1]), x);
}

/// Rows [begin, end) of C = A B with n columns; rows of B and C lie ldb and ldc apart. Strips of columns stay in registers.
template <class M, class Index, class S>
void spmm(const CsrView<M, Cpu, Index>& a, const S* b, long ldb, S* c, long ldc, long n, long begin, long end) {
  constexpr long strip = 64;
  for (long i = begin; i < end; ++i)
    for (long j = 0; j < n; j += strip) {
      const long width = n - j < strip ? n - j : strip;
      S sums[strip] = {};
      for (long k = a.offsets[i]; k < static_cast<long>(a.offsets[i + 1]); ++k) {
        const S* row = b + static_cast<long>(a.indices[k]) * ldb + j;
        S weight = 1;
        if constexpr (!a.pattern) weight = a.values[k];
        if (width == strip)
          for (long l = 0; l < strip; ++l) sums[l] += weight * row[l];
        else
          for (long l = 0; l < width; ++l) sums[l] += weight * row[l];
      }
      for (long l = 0; l < width; ++l) c[i * ldc + j + l] = sums[l];
    }
}

}  // namespace skein::inline SKEIN_ABI::ops::cpu
