// SPDX-License-Identifier: Apache-2.0
// Face of the products of a sparse matrix (CSR) with a dense vector or matrix: dispatches on the device tag. Tensors are
// multiplied by ops/sparse_product.hpp.
#pragma once
#include "../core/workers.hpp"
#include "cpu/spmv.hpp"
#include "reference/spmv.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// Sparse products on one device; a device without its header is a compile error that names this.
template <class Device> struct SparseKernels;

template <> struct SparseKernels<Cpu> {
  template <class M, class Index, class S> static void mv(const CsrView<M, Cpu, Index>& a, const S* x, S* y, const Worker& w) {
    cpu::spmv(a, x, y, cpu::balanced_row(a.offsets, a.rows, w.index, w.count),
              cpu::balanced_row(a.offsets, a.rows, w.index + 1, w.count));
  }
  template <class M, class Index, class S>
  static void mm(const CsrView<M, Cpu, Index>& a, const S* b, long ldb, S* c, long ldc, long n, const Worker& w) {
    cpu::spmm(a, b, ldb, c, ldc, n, cpu::balanced_row(a.offsets, a.rows, w.index, w.count),
              cpu::balanced_row(a.offsets, a.rows, w.index + 1, w.count));
  }
};

/// y = A x: x has A's columns, y its rows, both dense; y must not overlap x. M is S or void. Several workers share the rows by
/// their entries, without a barrier; a GPU's stream does it at once.
template <class M, class D, class Index, class S>
void spmv(const CsrView<M, D, Index>& a, const S* x, S* y, const Worker& worker = {}) {
  static_assert(std::is_void_v<M> || std::is_same_v<M, S>,
                "a sparse matrix and a vector of different scalar types: convert one of them");
  if (a.rows > 0) SparseKernels<D>::mv(a, x, y, worker);
}

/// C = A B with n columns, row-major; rows of B and C lie ldb and ldc apart. As above.
template <class M, class D, class Index, class S>
void spmm(const CsrView<M, D, Index>& a, const S* b, long ldb, S* c, long ldc, long n, const Worker& worker = {}) {
  static_assert(std::is_void_v<M> || std::is_same_v<M, S>,
                "a sparse and a dense matrix of different scalar types: convert one of them");
  if (a.rows > 0 && n > 0) SparseKernels<D>::mm(a, b, ldb, c, ldc, n, worker);
}

}  // namespace skein::inline SKEIN_ABI::ops
