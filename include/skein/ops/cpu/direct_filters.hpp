// SPDX-License-Identifier: Apache-2.0
// Forward pass of a direct convolution that vectorises over the filters: blocks of some pixels of a row by some vectors of
// filters stay in registers, over the contiguous values of each row of a patch. Weights as they are in the arena.
#pragma once
#include "direct_rows.hpp"

#if SKEIN_WITH_XSIMD

namespace skein::inline SKEIN_ABI::ops::cpu {

/// Forward pass of a direct convolution in vectors over the filters.
template <class Scalar, DirectPlan P> struct DirectFilters {
  static constexpr const Conv2dGeometry& conv() { return plan.g.conv; }
  static constexpr DirectPlan plan = P;
  static constexpr int filters = P.conv().filters, lanes = best_lanes<Scalar>(filters);
  static constexpr int vectors = (filters + lanes - 1) / lanes, pitch = vectors * lanes;
  static constexpr int columns = P.conv().out_width(), rows = P.conv().out_height();
  static constexpr int step = P.conv().stride * P.conv().channels;  // values from one pixel's patch to the next one's
  using V = Vector<Scalar, lanes>;

  /// x: one image; y: (pixels, filters); winners: likewise, where there is pooling. adds: to y in place of the bias, where
  /// nothing is pooled and the filters fill vectors.
  static void image(const Scalar* x, const Scalar* weight, const Scalar* bias, Scalar* y, ArgMax* winners, Scalar* workspace,
                    bool adds = false) {
    const Scalar* from = x;
    if constexpr (P.conv().padding > 0) {
      pad(x, workspace);
      from = workspace;
    }
    constexpr long row_step = P.conv().stride * P.padded_row();
    Scalar* ring = workspace + P.rows_at();
    if constexpr (!P.g.pooled()) {
      for (int r = 0; r < rows; ++r) {
        Scalar* to = y + 1L * r * columns * filters;
        row(from + r * row_step, weight, adds ? Start{to, pitch} : Start{bias, 0}, pitch == filters ? to : ring);
        if (pitch != filters)
          for (int p = 0; p < columns; ++p) std::memcpy(to + 1L * p * filters, ring + 1L * p * pitch, filters * sizeof(Scalar));
      }
    } else {
      int next = 0;
      for (int r = 0; r < P.g.out_height(); ++r) {
        const int top = r * P.g.pool_stride - P.g.pool_padding, end = top + P.g.pool_kernel < rows ? top + P.g.pool_kernel : rows;
        for (next = next < top ? top : next; next < end; ++next)
          row(from + next * row_step, weight, {bias, 0}, ring + 1L * (next % P.g.pool_kernel) * columns * pitch);
        const long at = 1L * r * P.g.out_width() * filters;
        PoolRows<Scalar, P, pitch>::run(ring, r, y + at, winners + at);
      }
    }
  }

  /// Clears what pad() does not write.
  static void clear([[maybe_unused]] Scalar* workspace) {
    if constexpr (P.conv().padding > 0) std::memset(workspace, 0, P.padded_image() * sizeof(Scalar));
  }

 private:
  static constexpr int most_vectors = accumulators >= 24 ? 4 : 3;
  static constexpr int chunk() {  // vectors a block
    for (int n = most_vectors; n > 1; --n)
      if (vectors % n == 0) return n;
    return 1;
  }
  static constexpr int most_pixels = accumulators / chunk() < 12 ? accumulators / chunk() : 12;
  static constexpr int blocks = (columns + most_pixels - 1) / most_pixels;
  static constexpr int pixels = columns / blocks, wider = columns % blocks;  // the first `wider` blocks have one more

  static void pad(const Scalar* x, Scalar* to) {
    constexpr long n = 1L * P.conv().width * P.conv().channels;
    to += P.conv().padding * (P.padded_row() + P.conv().channels);
    for (int r = 0; r < P.conv().height; ++r) std::memcpy(to + r * P.padded_row(), x + r * n, n * sizeof(Scalar));
  }
  /// What the sums of a row begin with: the bias for each pixel, or what is there.
  struct Start {
    const Scalar* at;
    long pitch;
    Start from(long pixel) const { return {at + pixel * pitch, pitch}; }
  };
  static void row(const Scalar* x, const Scalar* weight, Start start, Scalar* to) {
    int p = 0;
    if constexpr (wider > 0)
      for (; p < wider * (pixels + 1); p += pixels + 1)
        block<pixels + 1>(x + p * step, weight, start.from(p), to + 1L * p * pitch);
    for (; p < columns; p += pixels) block<pixels>(x + p * step, weight, start.from(p), to + 1L * p * pitch);
  }
  template <int N> static SKEIN_NOINLINE void block(const Scalar* x, const Scalar* weight, Start start, Scalar* to) {
    constexpr int C = chunk();
    for (int first = 0; first < pitch; first += C * lanes) {
      V sum[N][C];
#pragma GCC unroll 16
      for (int p = 0; p < N; ++p)
#pragma GCC unroll 16
        for (int v = 0; v < C; ++v) sum[p][v] = load_from<V>(start.at + p * start.pitch + first + v * lanes);
      const Scalar* w = weight + first;
      for (int ky = 0; ky < P.conv().kernel; ++ky) {
        const Scalar* from = x + ky * P.padded_row();
        for (int k = 0; k < P.row_values(); ++k, w += P.conv().weight_pitch()) {
          V taps[C];
#pragma GCC unroll 16
          for (int v = 0; v < C; ++v) {
            taps[v] = load_from<V>(w + v * lanes);
            keep(taps[v]);
          }
#pragma GCC unroll 16
          for (int p = 0; p < N; ++p) {
            const V value(from[p * step + k]);
#pragma GCC unroll 16
            for (int v = 0; v < C; ++v) sum[p][v] = xsimd::fma(value, taps[v], sum[p][v]);
          }
        }
      }
#pragma GCC unroll 16
      for (int p = 0; p < N; ++p)
#pragma GCC unroll 16
        for (int v = 0; v < C; ++v) {
          if (P.g.relu && !P.g.pooled()) sum[p][v] = xsimd::max(V(Scalar(0)), sum[p][v]);  // NaN stays
          store_to(to + p * pitch + first + v * lanes, sum[p][v]);
        }
    }
  }
};

}  // namespace skein::inline SKEIN_ABI::ops::cpu
#endif
