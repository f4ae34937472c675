// SPDX-License-Identifier: Apache-2.0
// Rows of a convolution to rows of its output: max-pooling over a ring of rows that are still in the first-level cache, ReLU,
// and the winners. Vectors over the channels.
#pragma once
#include <cstring>

#include "direct_plan.hpp"
#include "vector.hpp"

#if SKEIN_WITH_XSIMD

namespace skein::inline SKEIN_ABI::ops::cpu {

/// Pitch: scalars between two pixels of a row; rows may be read a vector beyond their end.
template <class Scalar, DirectPlan P, int Pitch> struct PoolRows {
  static constexpr int channels = P.conv().filters, lanes = best_lanes<Scalar>(channels);
  static constexpr int kernel = P.g.pool_kernel, stride = P.g.pool_stride, padding = P.g.pool_padding;
  static constexpr int columns = P.conv().out_width(), height = P.conv().out_height();
  using V = Vector<Scalar, lanes>;

  /// Output row r; conv row i lies at ring + (i % kernel) * columns * Pitch. y, winners: (columns of the output, channels).
  static SKEIN_NOINLINE void run(const Scalar* ring, int r, Scalar* y, ArgMax* winners) {
    const int top = r * stride - padding, y0 = top < 0 ? -top : 0, y1 = top + kernel > height ? height - top : kernel;
    for (int column = 0; column < P.g.out_width(); ++column) {
      const int left = column * stride - padding;
      const int x0 = padding && left < 0 ? -left : 0, x1 = padding && left + kernel > columns ? columns - left : kernel;
      for (int c = 0; c < channels; c += lanes) {
        V best(Scalar(0)), place(Scalar(0));
        bool first = true;
        for (int i = y0; i < y1; ++i) {
          const Scalar* row = ring + 1L * ((top + i) % kernel) * columns * Pitch + c;
          for (int j = x0; j < x1; ++j) {
            const V value = load_from<V>(row + 1L * (left + j) * Pitch), here(static_cast<Scalar>(i * kernel + j));
            if (first) {
              best = value;
              place = here;
              first = false;
              continue;
            }
            const auto wins = (value > best) | ~(value == value);  // xsimd's != is false for NaN on AVX-512
            best = xsimd::select(wins, value, best);
            place = xsimd::select(wins, here, place);
          }
        }
        if (P.g.relu) {
          place = xsimd::select(best <= V(Scalar(0)), V(static_cast<Scalar>(no_winner)), place);
          best = xsimd::max(V(Scalar(0)), best);  // a NaN stays
        }
        const long at = 1L * column * channels + c;
        put(y + at, winners + at, best, place, channels - c);
      }
    }
  }

 private:
  static SKEIN_ALWAYS_INLINE void put(Scalar* y, ArgMax* winners, const V& best, const V& place, int left) {
    if (channels % lanes == 0 || left >= lanes) {
      store_to(y, best);
      store_bytes<lanes>(winners, place);
    } else {
      alignas(64) Scalar values[lanes];
      ArgMax places[lanes];
      best.store_aligned(values);
      store_bytes<lanes>(places, place);
      constexpr int tail = channels % lanes;
      std::memcpy(y, values, tail * sizeof(Scalar));
      std::memcpy(winners, places, tail);
    }
  }
};

}  // namespace skein::inline SKEIN_ABI::ops::cpu
#endif
