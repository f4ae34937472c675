// SPDX-License-Identifier: Apache-2.0
// Backward passes of a direct convolution with nothing pooled behind it and channels that fill whole vectors: every output has a
// gradient, so that dense loops win over those of direct_backward.hpp.
//
//     P the plan; x an image (height, width, channels), dx its gradient, dz (pixels, filters) the gradient of the outputs that a
//     ReLU let pass; n a sample, f a filter, r a row of outputs, v a vector of filters, kx, ky a place of the window; V a vector
//     of Scalar
#pragma once
#include <type_traits>

#include "column_sums.hpp"
#include "direct_filters.hpp"
#include "strided_data.hpp"

#if SKEIN_WITH_XSIMD

SKEIN_BEGIN_UNROLLED
namespace skein::inline SKEIN_ABI::ops::cpu {

/// The weights' gradient: some values of a patch by some vectors of filters in registers, over blocks of rows. Where the channels
/// are many, those of one place of the window, from the image as it is; else of a row of it, from a padded copy.
template <class Scalar, DirectPlan P> struct DenseWeights {
  static constexpr int filters = P.conv().filters, lanes = best_lanes<Scalar>(filters), vectors = filters / lanes;
  static constexpr bool possible = !P.g.pooled() && filters % lanes == 0;
  static constexpr bool padded = P.pads_backward();
  using V = Vector<Scalar, lanes>;

  /// image: padded, where the kernel wants that; dz: (pixels, filters); to: (weight_rows, weight_pitch), added to.
  static void add(const Scalar* image, const Scalar* dz, Scalar* to) {
    constexpr int rows = P.conv().out_height(), window = P.conv().kernel;
    for (int r = 0; r < rows; r += rows_together) {
      const int end = r + rows_together < rows ? r + rows_together : rows;
      [[maybe_unused]] int part = 0;
      for (int ky = 0; ky < window; ++ky)
        for (int v = 0; v < vectors; v += chunk)
          for (int kx = 0; kx < (padded ? 1 : window); ++kx) {
            const Pixels seen = padded ? Pixels{r, end, 0, P.conv().out_width()}
                                       : Pixels{std::max(r, first(ky)), std::min(end, behind(ky, P.conv().height)), first(kx),
                                                behind(kx, P.conv().width)};
            each_block(image, dz + v * lanes, ky, kx, seen, to + v * lanes);
            if constexpr (fetches) {
              fetch_part(image + 1L * end * P.conv().stride * row, rows_together * P.conv().stride * row, part);
              fetch_part(dz + 1L * end * P.conv().out_width() * filters, 1L * rows_together * P.conv().out_width() * filters,
                         part++);
            }
          }
    }
  }
  /// Adds the gradients of the weights and, where it is given, of the bias over the batch's images as they lie.
  static void add_batch(const Conv2dCall<Scalar>& c) requires(possible && !padded) {
    for (long n = 0; n < c.batch; ++n) add(c.x + n * P.conv().in_count(), c.dy + n * P.conv().out_count(), c.dweight);
    if (c.dbias)
      column_sums<filters>(ColumnSums<Scalar>{
          .rows = c.batch * P.conv().out_pixels(), .pitch = filters, .dy = c.dy, .sums = c.dbias, .accumulate = true});
  }

 private:
  static constexpr int chunk = vectors % 2 == 0 ? 2 : 1;
  static constexpr int most = accumulators / chunk < 16 ? accumulators / chunk : 16;
  static constexpr int together = padded ? P.row_values() : P.conv().channels;  // values that lie side by side
  static constexpr int blocks = (together + most - 1) / most, values = together / blocks, wider = together % blocks;
  static constexpr int rows_together = [] {  // their values and gradients stay in the first-level cache, where two rows do
    const long bytes = 4L * P.conv().out_width() * (P.conv().stride * P.conv().channels + filters);
    return static_cast<int>(std::clamp((32L << 10) / bytes, 2L, 8L));
  }();
  static constexpr long row = padded ? P.padded_row() : 1L * P.conv().width * P.conv().channels;
  static constexpr long step = 1L * P.conv().stride * P.conv().channels;

  /// Rows and columns of outputs.
  struct Pixels {
    int begin, end, first, behind;
  };
  /// The first output whose value at this place of the window lies in the image, and the one behind the last.
  static constexpr int first(int place) {
    const int outside = P.conv().padding - place, stride = P.conv().stride;
    return outside > 0 ? (outside + stride - 1) / stride : 0;
  }
  static constexpr int behind(int place, int size) {
    const int stride = P.conv().stride, outputs = (size + 2 * P.conv().padding - P.conv().kernel) / stride + 1;
    return std::min(outputs, (size + P.conv().padding - place + stride - 1) / stride);
  }
  /// The rows behind a block of them are fetched while that is computed, a part with each place of the window: where a stride or
  /// many filters keep the processor from seeing which lines come next, and all lines of the image are read.
  static constexpr bool fetches = !padded && P.conv().kernel >= P.conv().stride && filters >= 32;
  static SKEIN_ALWAYS_INLINE void fetch_part(const Scalar* from, long values, int part) {
    constexpr long line = 64 / static_cast<long>(sizeof(Scalar)),
                   parts = 1L * P.conv().kernel * P.conv().kernel * vectors / chunk;
    const long each = (values / line + parts - 1) / parts * line;
    for (long i = part * each; i < (part + 1) * each; i += line) __builtin_prefetch(from + i, 0, 2);
  }
  static void each_block(const Scalar* image, const Scalar* dz, int ky, int kx, const Pixels& seen, Scalar* to) {
    constexpr int origin = padded ? 0 : P.conv().padding;
    const Scalar* x = image + (1L * seen.begin * P.conv().stride + ky - origin) * row +
                      (1L * seen.first * P.conv().stride + kx - origin) * P.conv().channels;
    dz += (1L * seen.begin * P.conv().out_width() + seen.first) * filters;
    to += (1L * ky * P.row_values() + kx * P.conv().channels) * P.conv().weight_pitch();
    int k = 0;
    if constexpr (wider > 0)
      for (; k < wider * (values + 1); k += values + 1) block<values + 1>(x + k, dz, seen, to + k * P.conv().weight_pitch());
    for (; k < together; k += values) block<values>(x + k, dz, seen, to + k * P.conv().weight_pitch());
  }

  template <int Values> static SKEIN_NOINLINE void block(const Scalar* x, const Scalar* dz, const Pixels& seen, Scalar* to) {
    V sum[Values][chunk];
#pragma GCC unroll 16
    for (int i = 0; i < Values; ++i)
#pragma GCC unroll 2
      for (int v = 0; v < chunk; ++v) sum[i][v] = load_from<V>(to + i * P.conv().weight_pitch() + v * lanes);
    for (int r = seen.begin; r < seen.end; ++r, x += P.conv().stride * row, dz += P.conv().out_width() * filters) {
      const Scalar *value_at = x, *slope = dz;
      for (int p = seen.first; p < seen.behind; ++p, value_at += step, slope += filters) {
        V s[chunk];
#pragma GCC unroll 2
        for (int v = 0; v < chunk; ++v) {
          s[v] = load_from<V>(slope + v * lanes);
          keep(s[v]);
        }
#pragma GCC unroll 16
        for (int i = 0; i < Values; ++i) {
          const V value(value_at[i]);
#pragma GCC unroll 2
          for (int v = 0; v < chunk; ++v) sum[i][v] = fused(value, s[v], sum[i][v]);
        }
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < Values; ++i)
#pragma GCC unroll 2
      for (int v = 0; v < chunk; ++v) store_to(to + i * P.conv().weight_pitch() + v * lanes, sum[i][v]);
  }
};

/// The gradient of the input for stride 1: a forward pass over the outputs' gradients, with the weights turned by 180 degrees.
template <class Scalar, DirectPlan P> struct DenseData {
  static constexpr DirectPlan plan = P.transposed();
  static constexpr int lanes = best_lanes<Scalar>(P.conv().channels);
  static constexpr bool possible() { return P.turns() && P.conv().channels % lanes == 0 && P.conv().channels > 4; }
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
  static void image(const Scalar* dz, const Scalar* transposed, const Scalar* zeros, Scalar* dx, Scalar* workspace, bool adds) {
    Forward::image(dz, transposed, zeros, dx, nullptr, workspace, adds);
  }
};

}  // namespace skein::inline SKEIN_ABI::ops::cpu
SKEIN_END_UNROLLED
#endif
