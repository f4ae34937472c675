// SPDX-License-Identifier: Apache-2.0
// Sums over the rows of a matrix, and the same in one pass with the derivative of an activation: bias gradients. Vectors over
// the columns, up to eight of them in registers while the rows go by.
//
//     r a row, j a column or a vector of them, p the arguments, V a vector of Scalar
#pragma once
#include "gemm_small.hpp"

#if SKEIN_WITH_XSIMD

SKEIN_BEGIN_UNROLLED
namespace skein::inline SKEIN_ABI::ops::cpu {

/// What is summed: the rows as they are.
struct NoChain {};

/// The rows that column_sums reads and writes, `pitch` apart. With a chain, g = chain(dy, y) is stored and summed.
template <class Scalar> struct ColumnSums {
  long rows = 0, pitch = 0;
  const Scalar* dy = nullptr;
  const Scalar* y = nullptr;
  Scalar* g = nullptr;
  Scalar* sums = nullptr;  ///< null: only the chain
  bool accumulate = false;
  int left = 0;  ///< lanes of the last vector that belong to a column
};

namespace detail {
template <class V, int Columns, bool Masked, class Chain, class Scalar>
SKEIN_NOINLINE void sum_panel(const ColumnSums<Scalar>& p) {
  constexpr int lanes = static_cast<int>(V::size);
  V sum[Columns];
#pragma GCC unroll 16
  for (int j = 0; j < Columns; ++j) sum[j] = p.accumulate && p.sums ? V::load_unaligned(p.sums + j * lanes) : V(Scalar(0));
  for (long r = 0; r < p.rows; ++r) {
    const long at = r * p.pitch;
#pragma GCC unroll 16
    for (int j = 0; j < Columns; ++j) {
      V v = V::load_unaligned(p.dy + at + j * lanes);
      if constexpr (!std::is_same_v<Chain, NoChain>) {
        v = Chain{}(v, V::load_unaligned(p.y + at + j * lanes));
        v.store_unaligned(p.g + at + j * lanes);
      }
      sum[j] += v;
    }
  }
  if (!p.sums) return;
#pragma GCC unroll 16
  for (int j = 0; j < Columns; ++j) {
    if (Masked && j == Columns - 1) sum[j] = xsimd::select(first_lanes<V>(p.left), sum[j], V(Scalar(0)));
    sum[j].store_unaligned(p.sums + j * lanes);
  }
}
}  // namespace detail

/// sums(j) (+)= sum over rows of dy(r, j), N columns; with a chain of g(r, j) = chain(dy, y), which is stored. Gaps of the sums
/// stay zero.
template <int N, class Chain = NoChain, class Scalar>
SKEIN_ALWAYS_INLINE void column_sums(const ColumnSums<Scalar>& all, Share share = {}) {
  constexpr int lanes = row_pitch(N) % widest_lanes<Scalar> == 0 ? widest_lanes<Scalar> : ColumnPlan<Scalar, N>::half;
  constexpr int vectors = (N + lanes - 1) / lanes, panels = (vectors + 7) / 8;
  using V = Vector<Scalar, lanes>;
  auto part = [&](int first) {
    ColumnSums<Scalar> p = all;
    const long j = 1L * first * lanes;
    p.dy += j;
    if (p.y) p.y += j;
    if (p.g) p.g += j;
    if (p.sums) p.sums += j;
    p.left = N - (vectors - 1) * lanes;
    return p;
  };
  for (int i = 0; i + 1 < panels; ++i)
    if (share.has(i, panels)) detail::sum_panel<V, 8, false, Chain>(part(8 * i));
  if (share.has(panels - 1, panels))
    detail::sum_panel<V, vectors - 8 * (panels - 1), N % lanes != 0, Chain>(part(8 * (panels - 1)));
}

}  // namespace skein::inline SKEIN_ABI::ops::cpu
SKEIN_END_UNROLLED
#endif
