// SPDX-License-Identifier: Apache-2.0
// Products of sparse matrices with tensors: mv(a, x) and mm(a, b), new or into memory that is there.
#pragma once
#include "../tensor/sparse.hpp"
#include "matmul.hpp"
#include "spmv.hpp"

namespace skein::inline SKEIN_ABI {

namespace detail {
template <class M, class X> struct SparseProductRule {
  static constexpr bool devices = std::is_same_v<typename M::Device, typename X::Device>;
  static constexpr bool scalars = !devices || M::pattern || std::is_same_v<typename M::Scalar, typename X::Scalar>;
  static constexpr bool legal = devices && scalars;
};
template <class Rule> constexpr void assert_sparse_product() {
  static_assert(Rule::devices,
                "a sparse matrix and a dense operand on different devices: move one of them with .to<Device>() first");
  static_assert(Rule::scalars,
                "a sparse matrix and a dense operand of different scalar types: convert the dense one with cast<Scalar>() first");
}
template <int R> void check_sparse_shapes(const char* operation, const Dims<2>& a, const Dims<R>& x) {
  if (a.e[1] != x.e[0])
    throw_shapes(operation, a, x,
                 R == 1 ? "do not multiply: the columns of the matrix must be the length of the vector"
                        : "do not multiply: the columns of the first must be the rows of the second");
}
}  // namespace detail

/// y = a x: a is (m, k), x (k), y (m), x and y dense and apart. `worker`: each worker of a set writes its share of the rows; no
/// barrier. Throws ShapeError, or ArgumentError where x and y overlap.
template <class M, class D, class I, class S, class X>
void mv_into(const TensorView<S, 1, D>& y, const Csr<M, D, I>& a, const X& x, const Worker& worker = {}) {
  detail::assert_sparse_product<detail::SparseProductRule<Csr<M, D, I>, X>>();
  const auto from = detail::as_operand(x);
  detail::check_sparse_shapes("mv", a.shape(), from.shape());
  if (y.extents[0] != a.rows() || !y.contiguous() || !from.contiguous())
    detail::throw_shapes("mv_into", dims(a.rows()), y.shape(),
                         "differ, or vectors are not dense: the first is that of the product, the second its target");
  detail::check_ordinals("mv", a.device(), from.where);
  detail::check_ordinals("mv", y.where, a.device());
  detail::check_apart<S, D>("mv_into", y, from);
  ops::spmv(a.view(), from.data, y.data, worker);
}

/// A sparse matrix (m, k) times a vector (k): a vector (m). Throws ShapeError with both shapes.
template <class M, class D, class I, TensorExpression X> Tensor<typename X::Scalar, 1, D> mv(const Csr<M, D, I>& a, const X& x) {
  static_assert(X::rank == 1, "mv takes a matrix and a vector: mm takes two matrices");
  using Rule = detail::SparseProductRule<Csr<M, D, I>, X>;
  if constexpr (!Rule::legal) {
    detail::assert_sparse_product<Rule>();
    return {};
  } else if constexpr (!detail::StoredTensor<X>) {
    return mv(a, eval(x));
  } else {
    if (const auto from = detail::as_operand(x); !from.contiguous()) return mv(a, eval(from));
    Tensor<typename X::Scalar, 1, D> y(dims(a.rows()), a.device());
    mv_into(y.view(), a, x);
    return y;
  }
}

/// c = a b: a is (m, k), b (k, n), c (m, n), the rows of b and c dense, b and c apart. `worker`, and what it throws: as in
/// mv_into.
template <class M, class D, class I, class S, class B>
void mm_into(const TensorView<S, 2, D>& c, const Csr<M, D, I>& a, const B& b, const Worker& worker = {}) {
  detail::assert_sparse_product<detail::SparseProductRule<Csr<M, D, I>, B>>();
  const auto from = detail::as_operand(b);
  detail::check_sparse_shapes("mm", a.shape(), from.shape());
  const long n = from.extents[1];
  const auto rows_dense = [n](const auto& v) { return n == 1 || v.strides[1] == 1; };
  if (c.extents[0] != a.rows() || c.extents[1] != n || !rows_dense(c) || !rows_dense(from))
    detail::throw_shapes("mm_into", dims(a.rows(), n), c.shape(),
                         "differ, or rows are not dense: the first is that of the product, the second its target");
  detail::check_ordinals("mm", a.device(), from.where);
  detail::check_ordinals("mm", c.where, a.device());
  detail::check_apart<S, D>("mm_into", c, from);
  ops::spmm(a.view(), from.data, from.extents[0] == 1 ? n : from.strides[0], c.data, c.extents[0] == 1 ? n : c.strides[0], n,
            worker);
}

/// A sparse matrix (m, k) times a dense one (k, n): a dense matrix (m, n).
template <class M, class D, class I, TensorExpression B> Tensor<typename B::Scalar, 2, D> mm(const Csr<M, D, I>& a, const B& b) {
  static_assert(B::rank == 2, "mm takes two matrices: mv takes a matrix and a vector, reshape() makes a matrix of a vector");
  using Rule = detail::SparseProductRule<Csr<M, D, I>, B>;
  if constexpr (!Rule::legal) {
    detail::assert_sparse_product<Rule>();
    return {};
  } else if constexpr (!detail::StoredTensor<B>) {
    return mm(a, eval(b));
  } else {
    const auto from = detail::as_operand(b);
    if (!(from.strides[1] == 1 && from.strides[0] >= from.extents[1])) return mm(a, eval(from));
    Tensor<typename B::Scalar, 2, D> c(dims(a.rows(), from.extents[1]), a.device());
    mm_into(c.view(), a, b);
    return c;
  }
}

}  // namespace skein::inline SKEIN_ABI
