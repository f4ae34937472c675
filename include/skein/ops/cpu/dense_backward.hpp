// SPDX-License-Identifier: Apache-2.0
// Backward passes of a direct convolution with nothing pooled behind it and channels that fill whole vectors: every output has a
// gradient, so that dense loops win over those of direct_backward.hpp.
#pragma once
#include "direct_filters.hpp"

#if SKEIN_WITH_XSIMD

namespace skein::inline SKEIN_ABI::ops::cpu {

/// The weights' gradient: some values of a patch by some vectors of filters in registers, over blocks of rows.
template <class Scalar, DirectPlan P> struct DenseWeights {
  static constexpr int filters = P.conv().filters, lanes = best_lanes<Scalar>(filters), vectors = filters / lanes;
  static constexpr bool possible = !P.g.pooled() && filters % lanes == 0;
  using V = Vector<Scalar, lanes>;

  /// image: padded; g: (pixels, filters); to: (weight_rows, weight_pitch), added to.
  static void add(const Scalar* image, const Scalar* g, Scalar* to) {
    constexpr int rows = P.conv().out_height();
    for (int r = 0; r < rows; r += 4) {
      const int end = r + 4 < rows ? r + 4 : rows;
      for (int ky = 0; ky < P.conv().kernel; ++ky)
        for (int v = 0; v < vectors; v += chunk) {
          int k = 0;
          for (; k + values <= P.row_values(); k += values) block<values>(image, g + v * lanes, ky, k, r, end, to + v * lanes);
          constexpr int left = P.row_values() % values;
          if constexpr (left > 0) block<left>(image, g + v * lanes, ky, k, r, end, to + v * lanes);
        }
    }
  }

 private:
  static constexpr int chunk = vectors % 2 == 0 ? 2 : 1;
  static constexpr int most = accumulators / chunk < 16 ? accumulators / chunk : 16;
  static constexpr int blocks = (P.row_values() + most - 1) / most, values = (P.row_values() + blocks - 1) / blocks;

  template <int N>
  static SKEIN_NOINLINE void block(const Scalar* image, const Scalar* g, int ky, int k, int row, int end, Scalar* to) {
    to += (1L * ky * P.row_values() + k) * P.conv().weight_pitch();
    V sum[N][chunk];
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i)
#pragma GCC unroll 2
      for (int v = 0; v < chunk; ++v) sum[i][v] = load_from<V>(to + i * P.conv().weight_pitch() + v * lanes);
    for (int r = row; r < end; ++r) {
      const Scalar* x = image + (1L * r * P.conv().stride + ky) * P.padded_row() + k;
      const Scalar* slope = g + 1L * r * P.conv().out_width() * filters;
      for (int p = 0; p < P.conv().out_width(); ++p, x += P.conv().stride * P.conv().channels, slope += filters) {
        V s[chunk];
#pragma GCC unroll 2
        for (int v = 0; v < chunk; ++v) {
          s[v] = load_from<V>(slope + v * lanes);
          keep(s[v]);
        }
#pragma GCC unroll 16
        for (int i = 0; i < N; ++i) {
          const V value(x[i]);
#pragma GCC unroll 2
          for (int v = 0; v < chunk; ++v) sum[i][v] = xsimd::fma(value, s[v], sum[i][v]);
        }
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i)
#pragma GCC unroll 2
      for (int v = 0; v < chunk; ++v) store_to(to + i * P.conv().weight_pitch() + v * lanes, sum[i][v]);
  }
};

/// The gradient of the input for stride 1: a forward pass over the outputs' gradients, with the weights turned by 180 degrees.
template <class Scalar, DirectPlan P> struct DenseData {
  static constexpr DirectPlan plan = P.transposed();
  static constexpr int lanes = best_lanes<Scalar>(P.conv().channels);
  static constexpr bool possible = P.turns() && P.conv().channels % lanes == 0 && P.conv().channels > 4;
  using Forward = DirectFilters<Scalar, plan>;

  /// (kernel, kernel, filters, channels).
  static void turn(const Scalar* weight, Scalar* to) {
    constexpr int k = P.conv().kernel, channels = P.conv().channels, filters = P.conv().filters;
    for (int t = 0; t < k * k; ++t)
      for (int f = 0; f < filters; ++f)
        for (int c = 0; c < channels; ++c)
          to[(1L * t * filters + f) * row_pitch(channels) + c] =
              weight[(1L * (k * k - 1 - t) * channels + c) * P.conv().weight_pitch() + f];
  }
  /// zeros: as many as there are channels, in whole vectors. adds: to dx, else it is written.
  static void image(const Scalar* g, const Scalar* transposed, const Scalar* zeros, Scalar* dx, Scalar* workspace, bool adds) {
    Forward::image(g, transposed, zeros, dx, nullptr, workspace, adds);
  }
};

}  // namespace skein::inline SKEIN_ABI::ops::cpu
#endif
