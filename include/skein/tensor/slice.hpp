// SPDX-License-Identifier: Apache-2.0
// What goes between the parentheses of a tensor: an index (drops the axis), range(begin, end, step), all, new_axis.
// Here negative indices and ends count from the back, as in Python (not where all arguments are indices: that is an element,
// whose indices are not looked at); steps are positive (reverse() turns an axis round).
#pragma once
#include <climits>
#include <concepts>
#include <type_traits>

#include "dims.hpp"

namespace skein::inline SKEIN_ABI {

/// Every step-th index of [begin, end) of one axis.
struct Slice {
  long begin = 0, end = LONG_MAX, step = 1;
};
/// a(range(1, 4)): three rows; range(2): from the third to the last; range(0, -1): all but the last.
constexpr Slice range(long begin, long end = LONG_MAX, long step = 1) { return {begin, end, step}; }

struct All {};
/// The whole axis.
inline constexpr All all{};
struct NewAxis {};
/// An axis of extent 1: v(all, new_axis) is a column.
inline constexpr NewAxis new_axis{};

namespace detail {
template <class T> using Bare = std::remove_cv_t<std::remove_reference_t<T>>;
template <class T> concept SliceArgument =
    std::integral<Bare<T>> || std::same_as<Bare<T>, Slice> || std::same_as<Bare<T>, All> || std::same_as<Bare<T>, NewAxis>;
template <class... A> inline constexpr int consumed_axes = (0 + ... + (std::same_as<Bare<A>, NewAxis> ? 0 : 1));
template <class... A> inline constexpr int added_axes = (0 + ... + (std::same_as<Bare<A>, NewAxis> ? 1 : 0));
template <class... A> inline constexpr int dropped_axes = (0 + ... + (std::integral<Bare<A>> ? 1 : 0));
template <int Rank, class... A> inline constexpr bool is_element = dropped_axes<A...> == Rank && sizeof...(A) == Rank;
template <int Rank, class... A> inline constexpr int sliced_rank = Rank - dropped_axes<A...> + added_axes<A...>;

/// Walks over the arguments of a slice: offset of the first value, and the extents and strides that remain.
template <int From, int To> struct Slicer {
  const Dims<From>& extents;
  const Dims<From>& strides;
  long offset = 0;
  Dims<To> out_extents{}, out_strides{};
  int in = 0, out = 0;

  [[noreturn]] SKEIN_NOINLINE void fail(long index) const {
    throw ArgumentError(text("slice: index {} is outside of axis {} of shape {}", index, in, shape_text(extents)));
  }
  constexpr long resolve(long index, long limit) const {
    const long i = index < 0 ? index + extents.e[in] : index;
    if (i < 0 || i >= limit) fail(index);
    return i;
  }
  constexpr void keep(long extent, long stride) {
    out_extents.e[out] = extent;
    out_strides.e[out++] = stride;
  }
  template <std::integral I> constexpr void take(I index) {
    offset += resolve(static_cast<long>(index), extents.e[in]) * strides.e[in];
    ++in;
  }
  constexpr void take(All) {
    keep(extents.e[in], strides.e[in]);
    ++in;
  }
  constexpr void take(NewAxis) { keep(1, 0); }
  constexpr void take(Slice s) {
    if (s.step < 1) throw ArgumentError(text("slice: step {}: steps are positive, reverse() turns an axis round", s.step));
    const long n = extents.e[in], begin = resolve(s.begin, n + 1), end = s.end == LONG_MAX ? n : resolve(s.end, n + 1);
    const long count = end > begin ? (end - begin - 1) / s.step + 1 : 0;
    if (count > 0) offset += begin * strides.e[in];
    keep(count, strides.e[in] * (count > 1 ? s.step : 1));  // no step is taken: it may be any number
    ++in;
  }
  constexpr void rest() {
    while (in < From) take(all);
  }
};
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI
