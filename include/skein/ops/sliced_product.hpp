// SPDX-License-Identifier: Apache-2.0
// Products of a SlicedPattern with vectors: mv(a, x), new or into memory that is there.
#pragma once
#include "../core/workers.hpp"
#include "cpu/sliced_spmv.hpp"
#include "sparse_product.hpp"

namespace skein::inline SKEIN_ABI {

namespace ops {
/// y = A x: x has A's columns, y its rows, both dense; y must not overlap x. Several workers share the rows, without a barrier.
template <class S> void spmv(const SlicedPattern& a, const S* x, S* y, const Worker& worker = {}) {
  cpu::sliced_spmv(a, x, y, worker.index, worker.count);
}
}  // namespace ops

/// y = a x: a is (m, k), x (k), y (m), x and y dense and apart, on the host. Throws ShapeError with both shapes, or ArgumentError
/// where x and y overlap.
template <class S> void mv_into(const TensorView<S, 1, Cpu>& y, const SlicedPattern& a, const TensorView<const S, 1, Cpu>& x,
                                const Worker& worker = {}) {
  detail::check_sparse_shapes("mv", dims(a.rows(), a.columns()), x.extents);
  if (y.extents[0] != a.rows() || !y.contiguous() || !x.contiguous())
    detail::throw_shapes("mv_into", dims(a.rows()), y.shape(),
                         "differ, or vectors are not dense: the first is that of the product, the second its target");
  detail::check_apart("mv_into", y, x);
  ops::spmv(a, x.data, y.data, worker);
}
/// A pattern (m, k) times a vector (k): a vector (m).
template <class S> Tensor<S, 1, Cpu> mv(const SlicedPattern& a, const Tensor<S, 1, Cpu>& x) {
  Tensor<S, 1, Cpu> y(dims(a.rows()));
  mv_into<S>(y.view(), a, x.view());
  return y;
}

}  // namespace skein::inline SKEIN_ABI
