// SPDX-License-Identifier: Apache-2.0
// Products of sparse matrices on a GPU: with values by cuSPARSE, in the algorithms that give the same bits in every run; patterns
// and other indices by kernels of our own, a warp or a thread a row. Nothing waits and nothing is allocated but workspace.
//
//     y = A x, C = A B; M the type of A's values (void: ones), S that of vectors; k an entry of a row; n columns of B and C, ldb,
//     ldc scalars from row to row of them
#pragma once
#include "../../device/cuda/launch.hpp"
#include "../spmv.hpp"
#include "cusparse.hpp"

namespace skein::inline SKEIN_ABI::ops {

namespace cuda {
/// y = A x, row by row.
template <class M, class Index, class S> struct SparseRow {
  CsrView<M, Cuda, Index> a;
  const S* x;
  S* y;

  struct Add {
    constexpr double operator()(double p, double q) const { return p + q; }
  };
  template <class Lanes> SKEIN_HOST_DEVICE void operator()(long row, Lanes lanes) const {
    const long end = a.offsets[row + 1];
    double total = 0;
    for (long k = a.offsets[row] + lanes.index; k < end; k += lanes.count) {
      if constexpr (std::is_void_v<M>) total += static_cast<double>(x[a.indices[k]]);
      else total += static_cast<double>(a.values[k]) * static_cast<double>(x[a.indices[k]]);
    }
    total = lanes.reduce(total, Add{});
    if (lanes.index == 0) y[row] = static_cast<S>(total);
  }
};

/// C = A B, value by value: neighbouring columns are neighbouring threads.
template <class M, class Index, class S> struct SparseValue {
  CsrView<M, Cuda, Index> a;
  const S* b;
  S* c;
  long ldb, ldc, n;

  constexpr void operator()(long i) const {
    const long row = i / n, column = i - row * n;
    double total = 0;
    for (long k = a.offsets[row]; k < static_cast<long>(a.offsets[row + 1]); ++k) {
      const double v = static_cast<double>(b[static_cast<long>(a.indices[k]) * ldb + column]);
      if constexpr (std::is_void_v<M>) total += v;
      else total += static_cast<double>(a.values[k]) * v;
    }
    c[row * ldc + column] = static_cast<S>(total);
  }
};
}  // namespace cuda

template <> struct SparseKernels<Cuda> {
  template <class M, class Index, class S> static void mv(const CsrView<M, Cuda, Index>& a, const S* x, S* y, const Worker&) {
    const skein::cuda::UseDevice there(a.where);
    if constexpr (cusparse::supports<M, Index>)
      if (a.entries > 0) return by_library(a, x, y);
    const cuda::SparseRow<M, Index, S> kernel{a, x, y};
    if (a.entries >= 8 * a.rows) skein::cuda::for_each_row(a.rows, kernel);
    else skein::cuda::for_each(a.rows, skein::cuda::detail::OneLane<cuda::SparseRow<M, Index, S>>{kernel});
  }

  template <class M, class Index, class S>
  static void mm(const CsrView<M, Cuda, Index>& a, const S* b, long ldb, S* c, long ldc, long n, const Worker&) {
    const skein::cuda::UseDevice there(a.where);
    if constexpr (cusparse::supports<M, Index>)
      if (a.entries > 0) return by_library(a, b, ldb, c, ldc, n);
    skein::cuda::for_each(a.rows * n, cuda::SparseValue<M, Index, S>{a, b, c, ldb, ldc, n});
  }

 private:
  template <class M, class Index, class S> static void by_library(const CsrView<M, Cuda, Index>& a, const S* x, S* y) {
    if (skein::cuda::replaying()) return;
    constexpr auto plain = CUSPARSE_OPERATION_NON_TRANSPOSE;
    constexpr auto type = cusparse::type_of<S>;
    constexpr auto algorithm = CUSPARSE_SPMV_CSR_ALG2;  // the deterministic one
    const S one = 1, zero = 0;
    const cusparse::Of what{a.rows, a.columns, a.entries, 0};
    const cusparseHandle_t handle = cusparse::handle();
    const cusparse::Matrix matrix(a);
    const cusparse::Vector<const S> from(x, a.columns);
    const cusparse::Vector<S> to(y, a.rows);
    std::size_t bytes = 0;
    cusparse::check(
        cusparseSpMV_bufferSize(handle, plain, &one, matrix.get(), from.get(), &zero, to.get(), type, algorithm, &bytes),
        "cusparseSpMV_bufferSize", what);
    void* buffer = skein::cuda::workspace().get(bytes);
    cusparse::check(cusparseSpMV(handle, plain, &one, matrix.get(), from.get(), &zero, to.get(), type, algorithm, buffer),
                    "cusparseSpMV", what);
  }
  template <class M, class Index, class S>
  static void by_library(const CsrView<M, Cuda, Index>& a, const S* b, long ldb, S* c, long ldc, long n) {
    if (skein::cuda::replaying()) return;
    constexpr auto plain = CUSPARSE_OPERATION_NON_TRANSPOSE;
    constexpr auto type = cusparse::type_of<S>;
    constexpr auto algorithm = CUSPARSE_SPMM_CSR_ALG3;  // the deterministic one
    const S one = 1, zero = 0;
    const cusparse::Of what{a.rows, a.columns, a.entries, n};
    const cusparseHandle_t handle = cusparse::handle();
    const cusparse::Matrix matrix(a);
    const cusparse::Dense<const S> from(b, a.columns, n, ldb);
    const cusparse::Dense<S> to(c, a.rows, n, ldc);
    std::size_t bytes = 0;
    cusparse::check(
        cusparseSpMM_bufferSize(handle, plain, plain, &one, matrix.get(), from.get(), &zero, to.get(), type, algorithm, &bytes),
        "cusparseSpMM_bufferSize", what);
    void* buffer = skein::cuda::workspace().get(bytes);
    cusparse::check(cusparseSpMM(handle, plain, plain, &one, matrix.get(), from.get(), &zero, to.get(), type, algorithm, buffer),
                    "cusparseSpMM", what);
  }
};

}  // namespace skein::inline SKEIN_ABI::ops
