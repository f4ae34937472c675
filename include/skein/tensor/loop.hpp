// SPDX-License-Identifier: Apache-2.0
// The loop nest of an evaluation: extents and the target's strides, sorted so that the target's smallest stride is innermost,
// and collapsed, so that dense operands of any rank become one row. The axes in use are the last `rank` of N: the innermost
// is always N - 1, a compile-time index.
#pragma once
#include <cstddef>

#include "bound.hpp"
#include "dims.hpp"

namespace skein::inline SKEIN_ABI::detail {

template <int N> struct Loop {
  Dims<N> extents;
  Dims<N> stride;  // of the target
  int rank = N;

  constexpr bool empty() const { return extents.count() == 0; }
};

template <int N> constexpr void swap_axes(Dims<N>& d, int a, int b) {
  const long x = d.e[a];
  d.e[a] = d.e[b];
  d.e[b] = x;
}
constexpr long magnitude(long x) { return x < 0 ? -x : x; }

/// Axes of the target in falling order of their strides: a transposed target is written in the order of its memory.
template <int N, class B> constexpr void sort_axes(Loop<N>& loop, B& bound) {
  for (int i = 1; i < N; ++i)
    for (int j = i; j > 0 && magnitude(loop.stride.e[j - 1]) < magnitude(loop.stride.e[j]) && loop.extents.e[j - 1] > 1; --j) {
      swap_axes(loop.extents, j - 1, j);
      swap_axes(loop.stride, j - 1, j);
      bound.leaves([&](auto& l) { swap_axes(l.stride, j - 1, j); });
    }
}

/// Joins neighbouring axes wherever every operand goes on from one row to the next without a step; drops axes of extent 1.
/// Axis `fixed` (-1: none) stays on its own; its new place is returned.
template <int N, class B> constexpr int collapse(Loop<N>& loop, B& bound, int fixed = -1) {
  if constexpr (N > 1) {
    int out = N - 1, fixed_out = fixed == N - 1 ? N - 1 : -1;
    for (int i = N - 2; i >= 0; --i) {
      bool drop = loop.extents.e[i] == 1 && i != fixed, replace = false, joins = false;
      if (!drop && i != fixed && out != fixed_out) {
        replace = loop.extents.e[out] == 1;
        joins = loop.stride.e[i] == loop.stride.e[out] * loop.extents.e[out];
        if (!replace) bound.leaves([&](auto& l) { joins = joins && l.stride.e[i] == l.stride.e[out] * loop.extents.e[out]; });
      }
      if (drop) continue;
      if (replace) {
        loop.extents.e[out] = loop.extents.e[i];
        loop.stride.e[out] = loop.stride.e[i];
        bound.leaves([&](auto& l) { l.stride.e[out] = l.stride.e[i]; });
      } else if (joins) {
        loop.extents.e[out] *= loop.extents.e[i];
      } else {
        if (out < 1) __builtin_unreachable();
        --out;
        loop.extents.e[out] = loop.extents.e[i];
        loop.stride.e[out] = loop.stride.e[i];
        bound.leaves([&](auto& l) { l.stride.e[out] = l.stride.e[i]; });
        if (i == fixed) fixed_out = out;
      }
    }
    for (int i = 0; i < out; ++i) loop.extents.e[i] = 1;
    loop.rank = N - out;
    return fixed_out;
  } else {
    return fixed;
  }
}

/// Calls row() for every combination of the axes before the last `inner`, after moving the target and all leaves there.
template <int N, class T, class B, class Row>
SKEIN_ALWAYS_INLINE void for_each_row(const Loop<N>& loop, int inner, T*& to, B& bound, Row&& row) {
  const int first = N - loop.rank, last = N - 1 - inner;
  if (first < 0) __builtin_unreachable();
  long index[N] = {};
  while (true) {
    row();
    int d = last;
    for (; d >= first; --d) {
      to += loop.stride.e[d];
      bound.advance(d, 1);
      if (++index[d] < loop.extents.e[d]) break;
      to -= loop.stride.e[d] * loop.extents.e[d];
      bound.advance(d, -loop.extents.e[d]);
      index[d] = 0;
    }
    if (d < first) return;
  }
}

/// The bytes that a strided array touches: [low, high).
template <int N> struct Footprint {
  const char *low, *high;
  template <class S>
  static SKEIN_ALWAYS_INLINE constexpr Footprint of(const S* data, const Dims<N>& stride, const Dims<N>& extents) {
    long lo = 0, hi = 0;
    for (int i = 0; i < N; ++i) {
      const long reach = stride.e[i] * (extents.e[i] - 1);
      (reach < 0 ? lo : hi) += reach;
    }
    return {reinterpret_cast<const char*>(data + lo), reinterpret_cast<const char*>(data + hi + 1)};
  }
};

/// Does writing the target spoil what a leaf still has to read? Not where they are the same values in the same order.
template <int N, class S, class Leaf> SKEIN_ALWAYS_INLINE bool spoils(const S* to, const Loop<N>& loop, const Leaf& leaf) {
  if constexpr (requires { leaf.data; }) {
    bool same = static_cast<const void*>(to) == static_cast<const void*>(leaf.data) && sizeof(S) == sizeof(typename Leaf::Scalar);
    for (int i = 0; i < N; ++i) same = same && (loop.extents.e[i] == 1 || loop.stride.e[i] == leaf.stride.e[i]);
    if (same) return false;
    const auto target = Footprint<N>::of(to, loop.stride, loop.extents),
               source = Footprint<N>::of(leaf.data, leaf.stride, loop.extents);
    return target.low < source.high && source.low < target.high;
  } else {
    return false;
  }
}

}  // namespace skein::inline SKEIN_ABI::detail
