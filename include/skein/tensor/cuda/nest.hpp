// SPDX-License-Identifier: Apache-2.0
// The loop nest of an evaluation as one flat index, for kernels: which row, how far into it; and whether the values of a row can
// be moved in packs of 16 bytes. Divisions are in 32 bits where the count allows.
#pragma once
#include <cstdint>

#include "../loop.hpp"

namespace skein::inline SKEIN_ABI::detail {

/// A nest whose rows are cut into groups of `width` values (the last one of a row may be shorter): group g of all.
template <int N> struct Groups {
  Loop<N> loop;
  int width = 1;
  long in_row = 1;      // groups in a row
  bool narrow = false;  // all indices fit 32 bits

  constexpr explicit Groups(const Loop<N>& nest, int values = 1)
      : loop(nest), width(values), in_row((nest.extents.e[N - 1] + values - 1) / values) {
    narrow = count() < (1L << 31);
  }
  constexpr long count() const {
    long n = in_row;
    for (int d = 0; d < N - 1; ++d) n *= loop.extents.e[d];
    return n;
  }
  constexpr long divide(long a, long b) const {
    return narrow ? static_cast<long>(static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b)) : a / b;
  }
  /// Moves the target and all leaves to the row of group g; returns its first index in the row.
  template <class T, class B> constexpr long enter(long g, T*& to, B& bound) const {
    if (loop.rank == 1) return g * width;
    long row = divide(g, in_row);
    const long first = (g - row * in_row) * width;
#if defined(__CUDACC__)
#pragma unroll  // else the strides go through local memory
#endif
    for (int d = N - 2; d >= 0; --d) {
      if (d < N - loop.rank) break;
      const long rest = divide(row, loop.extents.e[d]), index = row - rest * loop.extents.e[d];
      row = rest;
      to += loop.stride.e[d] * index;
      bound.advance(d, index);
    }
    return first;
  }
};

/// Values of a pack: 16 bytes of the widest type in memory.
template <class S, class B>
inline constexpr int pack_size = 16 / (static_cast<int>(sizeof(S)) > B::widest ? static_cast<int>(sizeof(S)) : B::widest);

/// Can values at `data` with these strides be moved in packs of W along the innermost axis, in every row?
template <int W, int N, class S> bool packs_fit(const S* data, const Dims<N>& stride, const Loop<N>& loop) {
  if (reinterpret_cast<std::uintptr_t>(data) % (sizeof(S) * W) != 0) return false;
  for (int d = N - loop.rank; d < N - 1; ++d)
    if (stride.e[d] % W != 0) return false;
  return true;
}
/// Can all leaves be moved in packs of W: each with unit stride and aligned, or one value for the whole row?
template <int W, int N, class B> bool leaves_fit(const Loop<N>& loop, B& bound) {
  bool fit = true;
  bound.leaves([&](auto& l) {
    if constexpr (requires { l.data; }) {
      const long inner = l.stride.e[N - 1];
      fit = fit && (inner == 0 || (inner == 1 && packs_fit<W>(l.data, l.stride, loop)));
    }
  });
  return fit;
}

}  // namespace skein::inline SKEIN_ABI::detail
