// SPDX-License-Identifier: Apache-2.0
// Values that stand in nested lists: initializer lists, C arrays, std::arrays. Their rank by type, extents and values.
#pragma once
#include <array>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <string>

#include "../core/error.hpp"
#include "dims.hpp"

namespace skein::inline SKEIN_ABI::detail {

template <class S, int R> struct NestedList { using type = std::initializer_list<typename NestedList<S, R - 1>::type>; };
template <class S> struct NestedList<S, 1> { using type = std::initializer_list<S>; };
template <class S> struct NestedList<S, 0> { using type = std::initializer_list<S>; };

/// Rank and extents of nested initializer lists, C arrays and std::arrays; values are copied in their order.
template <class T> struct Nested {
  static constexpr int rank = 0;
  using Scalar = T;
};
template <class T, std::size_t N> struct Nested<T[N]> {
  static constexpr int rank = Nested<T>::rank + 1;
  using Scalar = typename Nested<T>::Scalar;
};
template <class T, std::size_t N> struct Nested<std::array<T, N>> : Nested<T[N]> {};

template <int R, int Axis, class List> void list_extents(Dims<R>& e, const List& list) {
  e.e[Axis] = static_cast<long>(std::size(list));
  if constexpr (Axis + 1 < R)
    if (std::size(list) > 0) list_extents<R, Axis + 1>(e, *std::begin(list));
}
template <int R, int Axis, class S, class List> void list_values(const Dims<R>& e, S*& to, const List& list) {
  if (static_cast<long>(std::size(list)) != e.e[Axis])
    throw ShapeError(
        text("Tensor: a nested list has {} entries along axis {}, the first one there has {}: lists must be rectangular",
             std::size(list), Axis, e.e[Axis]));
  if constexpr (Axis + 1 < R)
    for (const auto& inner : list) list_values<R, Axis + 1>(e, to, inner);
  else
    for (const auto& v : list) *to++ = static_cast<S>(v);
}

}  // namespace skein::inline SKEIN_ABI::detail
