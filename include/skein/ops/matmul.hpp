// SPDX-License-Identifier: Apache-2.0
// Matrix products of tensors: mm (by ops::gemm) and mv (a fused row reduction: it is bound by memory). Views
// that are transposed or have padded rows are taken as they are; other strides are copied first.
#pragma once
#include <type_traits>

#include "../tensor/reduce.hpp"
#include "gemm.hpp"

namespace skein::inline SKEIN_ABI {

namespace detail {
template <class S, class D> struct GemmOperand {
  Tensor<S, 2, D> own;  // only where the view had strides that gemm does not take
  const S* data = nullptr;
  long pitch = 1;
  ops::Transpose transposed = ops::Transpose::no;

  explicit GemmOperand(const TensorView<const S, 2, D>& v) {
    if (!take(v)) {
      own = v;
      take(own.view());
    }
  }
  bool take(const TensorView<const S, 2, D>& v) {
    const long rows = v.extents[0], columns = v.extents[1];
    data = v.data;
    if ((v.strides[1] == 1 || columns == 1) && (v.strides[0] >= columns || rows == 1)) {
      pitch = rows == 1 ? columns : v.strides[0];
      transposed = ops::Transpose::no;
      return pitch >= columns;
    }
    if ((v.strides[0] == 1 || rows == 1) && v.strides[1] >= rows) {
      pitch = v.strides[1];
      transposed = ops::Transpose::yes;
      return true;
    }
    return false;
  }
};

template <class A, class B> struct ProductRule {
  static constexpr bool devices = std::is_same_v<typename A::Device, typename B::Device>;
  static constexpr bool scalars = !devices || std::is_same_v<typename A::Scalar, typename B::Scalar>;
  static constexpr bool legal = devices && scalars;
};
template <class Rule> constexpr void assert_product() {
  static_assert(Rule::devices, "a matrix product of tensors of different devices: move one of them with .to<Device>() first");
  static_assert(Rule::scalars, "a matrix product of different scalar types: convert one of them with cast<Scalar>() first");
}

template <class T> auto as_operand(const T& t) {
  using S = typename T::Scalar;
  if constexpr (IsView<T>::value) return TensorView<const S, T::rank, typename T::Device>(t);
  else return t.view();
}
template <class T> concept StoredTensor = IsView<T>::value || requires(const T& t) { t.view(); };

/// Operands of one call lie on one ordinal of their device.
template <class D> void check_ordinals(const char* operation, D a, D b) {
  if constexpr (!std::is_same_v<D, Cpu>)
    if (!(a == b))
      throw ArgumentError(
          text("{}: tensors on {} {} and {} meet: move one of them with .to()", operation, D::name, a.ordinal, b.ordinal));
}
/// Have two matrices memory in common? Columns of one array, which lie side by side in its rows, have not.
template <class S, class D> bool overlap(const TensorView<S, 2, D>& target, const TensorView<const S, 2, D>& operand) {
  if (target.size() == 0 || operand.size() == 0) return false;
  const auto writes = Footprint<2>::of(target.data, target.strides, target.extents),
             reads = Footprint<2>::of(operand.data, operand.strides, operand.extents);
  if (writes.low >= reads.high || reads.low >= writes.high) return false;
  const TensorView<const S, 2, D> rows = operand.strides[1] == 1 || operand.extents[1] == 1 ? operand : operand.transpose();
  const long pitch = target.extents[0] > 1 ? target.strides[0] : rows.strides[0], from = rows.data - target.data;
  if (pitch <= 0 || (rows.extents[0] > 1 && rows.strides[0] != pitch) || (rows.extents[1] > 1 && rows.strides[1] != 1))
    return true;
  const long column = (from % pitch + pitch) % pitch;  // of the operand, where the target's first is 0
  return column < target.extents[1] || column + rows.extents[1] > pitch;
}
template <class S, class D>
void check_apart(const char* operation, const TensorView<S, 2, D>& target, const TensorView<const S, 2, D>& operand) {
  if (overlap(target, operand))
    throw ArgumentError(std::string(operation) + ": the target overlaps a matrix that is multiplied: give it memory of its own");
}
/// Two vectors without gaps, of which a product writes one while it reads the other.
template <class S, class D>
void check_apart(const char* operation, const TensorView<S, 1, D>& target, const TensorView<const S, 1, D>& operand) {
  if (target.data < operand.data + operand.size() && operand.data < target.data + target.size())
    throw ArgumentError(std::string(operation) +
                        ": the target overlaps the vector that is multiplied: give it memory of its own");
}
}  // namespace detail

/// c = a b, matrices with extents (m, k), (k, n) and (m, n); the rows of c must be dense and follow each other. Throws
/// ShapeError, or ArgumentError where c overlaps a or b.
template <class S, class D> void mm_into(const TensorView<S, 2, D>& c, const std::type_identity_t<TensorView<const S, 2, D>>& a,
                                         const std::type_identity_t<TensorView<const S, 2, D>>& b) {
  if (a.extents[1] != b.extents[0])
    detail::throw_shapes("mm", a.extents, b.extents, "do not multiply: the columns of the first must be the rows of the second");
  if (c.extents[0] != a.extents[0] || c.extents[1] != b.extents[1] || (c.strides[1] != 1 && c.extents[1] != 1) ||
      (c.strides[0] < c.extents[1] && c.extents[0] > 1))
    detail::throw_shapes(
        "mm", dims(a.extents[0], b.extents[1]), c.extents,
        "differ: the first is that of the product, the second its target, with dense rows, each behind the one before");
  detail::check_ordinals("mm", a.where, b.where);
  detail::check_ordinals("mm", c.where, a.where);
  detail::check_apart("mm_into", c, a);
  detail::check_apart("mm_into", c, b);
  const long m = a.extents[0], n = b.extents[1], k = a.extents[1];
  if (m == 0 || n == 0) return;
  if (k == 0) return assign(c, S(0));
  [[maybe_unused]] const typename Memory<D>::Current there(c.where);
  const detail::GemmOperand<S, D> left(a), right(b);
  const long pitch = m == 1 ? n : c.strides[0];
  ops::gemm<D>(left.transposed, right.transposed, m, n, k, S(1), left.data, left.pitch, right.data, right.pitch, S(0), c.data,
               pitch);
}

/// The product of two matrices, (m, k) and (k, n): a tensor (m, n). Throws ShapeError with both shapes.
template <TensorExpression A, TensorExpression B> auto mm(const A& a, const B& b) {
  static_assert(A::rank == 2 && B::rank == 2,
                "mm takes two matrices: mv takes a matrix and a vector, reshape() makes a matrix of a vector");
  using S = typename A::Scalar;
  using D = typename A::Device;
  if constexpr (!detail::StoredTensor<A>) {
    return mm(eval(a), b);
  } else if constexpr (!detail::StoredTensor<B>) {
    return mm(a, eval(b));
  } else {
    Tensor<S, 2, D> c(dims(a.shape()[0], b.shape()[1]), a.device());
    if constexpr (detail::ProductRule<A, B>::legal) mm_into(c.view(), detail::as_operand(a), detail::as_operand(b));
    else detail::assert_product<detail::ProductRule<A, B>>();
    return c;
  }
}

/// A matrix (m, k) times a vector (k): a vector (m), of integers in long. Throws ShapeError with both shapes.
template <TensorExpression A, TensorExpression X> auto mv(const A& a, const X& x) {
  static_assert(A::rank == 2 && X::rank == 1, "mv takes a matrix and a vector: mm takes two matrices");
  if (a.shape()[1] != x.shape()[0])
    detail::throw_shapes("mv", a.shape(), x.shape(),
                         "do not multiply: the columns of the matrix must be the length of the vector");
  return sum(detail::widened(a) * detail::widened(x), 1);
}

}  // namespace skein::inline SKEIN_ABI
