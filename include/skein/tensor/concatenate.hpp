// SPDX-License-Identifier: Apache-2.0
// Tensors out of several: concatenate along an axis that they have, stack along a new one.
#pragma once
#include "tensor.hpp"

namespace skein::inline SKEIN_ABI {

namespace detail {
template <int R, class First, class... Rest> struct Joined {
  static constexpr bool one_rank = ((std::remove_cvref_t<First>::rank == std::remove_cvref_t<Rest>::rank) && ...);
  static_assert(one_rank, "tensors of different ranks are joined: reshape them to one rank first");
};
}  // namespace detail

/// One after the other along `axis`: concatenate(0, a, b, c). All other extents must be equal.
template <TensorExpression First, TensorExpression... Rest> auto concatenate(int axis, const First& first, const Rest&... rest) {
  using T = std::remove_cvref_t<First>;
  constexpr int R = T::rank;
  static_assert(R > 0, "numbers have no axis to be joined along: use stack");
  static_assert(detail::Joined<R, First, Rest...>::one_rank);
  const int a = detail::checked_axis(axis, R, "concatenate");
  Dims<R> extents = first.shape();
  const auto grow = [&](const Dims<R>& other) {
    for (int i = 0; i < R; ++i)
      if (i != a && extents.e[i] != other.e[i])
        detail::throw_shapes("concatenate", extents, other, "differ off the axis along which they are joined");
    extents.e[a] += other.e[a];
  };
  (grow(rest.shape()), ...);
  Tensor<typename T::Scalar, R, typename T::Device> out(extents, first.device());
  long begin = 0;
  const auto put = [&](const auto& part) {
    auto window = out.view();
    window.data += begin * window.strides.e[a];
    window.extents.e[a] = part.shape().e[a];
    begin += part.shape().e[a];
    if (window.size() > 0) window.assign(part);
  };
  put(first);
  (put(rest), ...);
  return out;
}

/// Side by side along a new axis: stack(0, u, v) is a matrix with rows u and v. All extents must be equal.
template <TensorExpression First, TensorExpression... Rest> auto stack(int axis, const First& first, const Rest&... rest) {
  using T = std::remove_cvref_t<First>;
  constexpr int R = T::rank;
  static_assert(detail::Joined<R, First, Rest...>::one_rank);
  const int a = detail::checked_axis(axis, R + 1, "stack");
  Dims<R + 1> extents;
  for (int i = 0, j = 0; i < R + 1; ++i) extents.e[i] = i == a ? static_cast<long>(sizeof...(Rest)) + 1 : first.shape().e[j++];
  Tensor<typename T::Scalar, R + 1, typename T::Device> out(extents, first.device());
  const auto whole = out.view();
  long at = 0;
  const auto put = [&](const auto& part) {
    if (!(part.shape() == first.shape()))
      detail::throw_shapes("stack", first.shape(), part.shape(), "differ: stacked tensors have one shape");
    TensorView<typename T::Scalar, R, typename T::Device> window(whole.data + at++ * whole.strides.e[a], first.shape(), {},
                                                                 whole.where);
    for (int i = 0, j = 0; i < R + 1; ++i)
      if (i != a) window.strides.e[j++] = whole.strides.e[i];
    window.assign(part);
  };
  put(first);
  (put(rest), ...);
  return out;
}

}  // namespace skein::inline SKEIN_ABI
