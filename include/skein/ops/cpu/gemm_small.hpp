// SPDX-License-Identifier: Apache-2.0
// Matrix products whose number of columns is known at compile time: C is cut into panels of a few vectors, each as wide as the
// registers allow. Rows of B and C are padded (row_pitch), so that whole vectors may be read and written behind the last column.
//
//     m rows of A and C, k columns of A and rows of B, N columns of B and C; p the product, V a vector of Scalar
#pragma once
#include "far_panel.hpp"

#if SKEIN_WITH_XSIMD
#include <utility>

namespace skein::inline SKEIN_ABI::ops::cpu {

/// How N columns are cut: `panels` of `lanes` lanes, of which the first `wider` are one vector wider than the others; and a
/// last one of half the lanes, where that saves work. A few columns that end in half a vector take half vectors throughout.
template <class Scalar, int N> struct ColumnPlan {
  static_assert(row_pitch(N) >= 8, "rows of up to four values are not padded: see dense_thin.hpp");
  static constexpr int widest = widest_lanes<Scalar>, half = widest * static_cast<int>(sizeof(Scalar)) > 32 ? widest / 2 : widest;
  static constexpr bool odd = N % widest > 0 && N % widest <= half;  // an odd number of half vectors
  static constexpr int lanes = row_pitch(N) % widest != 0 || (odd && N <= 10 * half) ? half : widest;
  static constexpr bool narrow_tail = half < lanes && odd;
  static constexpr int vectors = narrow_tail ? N / lanes : (N + lanes - 1) / lanes;
  static constexpr int panels = (vectors + detail::widest_tile - 1) / detail::widest_tile;
  static constexpr int base = panels > 0 ? vectors / panels : 0, wider = panels > 0 ? vectors % panels : 0;
  static constexpr int all = panels + (narrow_tail ? 1 : 0);
  static constexpr bool ragged = N % (narrow_tail ? half : lanes) != 0;
  using V = Vector<Scalar, lanes>;
  using Tail = Vector<Scalar, half>;

  static constexpr int width(int panel) { return base + (panel < wider ? 1 : 0); }
  static constexpr int first(int panel) { return (panel * base + (panel < wider ? panel : wider)) * lanes; }
};

/// How far the rows of B lie apart: near, all in the caches; or far, in a matrix that the second-level cache does not hold.
enum class Spacing { near, far };

/// C = op(A) B + start over N columns. Turned: A is stored (k, m). Masked: what C holds behind its last column stays zero
/// whatever B holds there.
template <int N, bool Turned, bool Masked, class Finish = Keep, Spacing B = Spacing::near, class Scalar>
SKEIN_ALWAYS_INLINE void small_product(const Product<Scalar>& product, Share share = {}) {
  using Plan = ColumnPlan<Scalar, N>;
  using Stored = std::conditional_t<is_rectifier<Finish>, Keep, Finish>;
  [&]<int... I>(std::integer_sequence<int, I...>) {
    auto one = [&]<int Index>(std::integral_constant<int, Index>) {
      if (!share.has(Index, Plan::all)) return;
      Product<Scalar> p = product.columns(Plan::first(Index));
      constexpr bool last = Index + 1 == Plan::all, masked = Masked && last && Plan::ragged;
      constexpr int width = Index < Plan::panels ? Plan::width(Index) : 1;
      using V = std::conditional_t<(Index < Plan::panels), typename Plan::V, typename Plan::Tail>;
      if constexpr (masked) p.left = N - Plan::first(Index) - (width - 1) * static_cast<int>(V::size);
      if constexpr (is_rectifier<Finish>) p.rectified = true;
      if constexpr (B == Spacing::far) far_panel<V, width, Turned, masked, Stored>(p);
      else panel<V, width, Turned, masked, Stored>(p);
    };
    const int each[] = {(one(std::integral_constant<int, I>{}), 0)...};
    (void)each;
  }
  (std::make_integer_sequence<int, Plan::all>{});
}

}  // namespace skein::inline SKEIN_ABI::ops::cpu
#endif
