// SPDX-License-Identifier: Apache-2.0
// Forward pass of a direct convolution that vectorises over the width, for one to a few input channels: the columns of the
// input lie apart by their phase (pooling stride times stride), so that a vector holds the same place of neighbouring pooling
// windows; pooling is then a maximum between registers.
//
//     P the plan; x an image (height, width, channels), y its output (pixels, filters), w weights of a tap; b a block of filters,
//     f a filter, c a channel, r a row of outputs, kx, ky a place of the window, q a place of the pooling's window; V a vector of
//     Scalar
#pragma once
#include "direct_rows.hpp"
#include "interleave.hpp"

#if SKEIN_WITH_XSIMD

SKEIN_BEGIN_UNROLLED
namespace skein::inline SKEIN_ABI::ops::cpu {

/// Forward pass of a direct convolution in vectors over the width.
template <class Scalar, DirectPlan P> struct DirectWidth {
  static constexpr int filters = P.conv().filters, kernel = P.conv().kernel, stride = P.conv().stride;
  static constexpr int window = P.window(), places = window * window;
  static constexpr int line = P.line(), lanes = best_lanes<Scalar>(line);
  static constexpr int phases = P.phases();
  static constexpr bool by_channel = P.g.pooled() && P.whole_windows();  // how the winners lie
  static constexpr long width = P.phase_width(), row_pitch = phases * width, plane_rows = P.padded_height() + kernel + phases;
  static constexpr long line_pitch = whole_line(line + 16);
  /// Filters in registers at a time: each holds its window's sums and one weight.
  static constexpr int most = (accumulators >= 24 ? 30 : 15) / (places + 1);
  static constexpr int blocks = (filters + most - 1) / most, together = (filters + blocks - 1) / blocks;
  static constexpr long taps = P.taps();
  using V = Vector<Scalar, lanes>;

  /// (blocks, channels, kernel, kernel, together), zero where there is no filter.
  static void pack(const Scalar* weight, Scalar* to) {
    for (int b = 0; b < blocks; ++b)
      for (int c = 0; c < P.conv().channels; ++c)
        for (int k = 0; k < kernel * kernel; ++k)
          for (int i = 0; i < together; ++i) {
            const int f = b * together + i;
            *to++ = f < filters ? weight[(1L * k * P.conv().channels + c) * P.conv().weight_pitch() + f] : Scalar(0);
          }
  }
  static void clear(Scalar* workspace) { std::memset(workspace, 0, P.planes() * sizeof(Scalar)); }

  static void image(const Scalar* x, const Scalar* packed, const Scalar* bias, Scalar* y, ArgMax* winners, Scalar* workspace) {
    spread(x, workspace);
    Scalar* values = workspace + P.values_at();
    Scalar* out = workspace + P.output_row_at();
    if constexpr (by_channel) {
      for (int r = 0; r < P.g.out_height(); ++r) {
        lines(workspace + r * phases * row_pitch, packed, bias, values, winners + 1L * r * line);
        put(values, out, y + 1L * r * line * filters);
      }
    } else if constexpr (!P.g.pooled()) {
      for (int r = 0; r < P.conv().out_height(); ++r) {
        lines(workspace + r * phases * row_pitch, packed, bias, values, nullptr);
        put(values, out, y + 1L * r * line * filters);
      }
    } else {  // windows overlap: whole rows, then pooling over the channels
      Scalar* ring = workspace + P.rows_at();
      int next = 0;
      for (int r = 0; r < P.g.out_height(); ++r) {
        const int top = r * P.g.pool_stride - P.g.pool_padding, rows = P.conv().out_height();
        const int end = top + P.g.pool_kernel < rows ? top + P.g.pool_kernel : rows;
        for (next = next < top ? top : next; next < end; ++next) {
          lines(workspace + next * phases * row_pitch, packed, bias, values, nullptr);
          put(values, out, ring + 1L * (next % P.g.pool_kernel) * line * filters);
        }
        const long at = 1L * r * P.g.out_width() * filters;
        PoolRows<Scalar, P, filters>::run(ring, r, y + at, winners + at);
      }
    }
  }

 private:
  /// Image to planes: (channels, rows, phases, columns of a phase), zeros around.
  static void spread(const Scalar* x, Scalar* planes) {
    constexpr int channels = P.conv().channels, padding = P.conv().padding, columns = P.conv().width;
    for (int c = 0; c < channels; ++c)
      for (int r = 0; r < P.conv().height; ++r) {
        const Scalar* from = x + 1L * r * columns * channels + c;
        Scalar* row = planes + (c * plane_rows + r + padding) * row_pitch;
#pragma GCC unroll 4
        for (int phase = 0; phase < phases; ++phase) {
          const int j0 = phase >= padding ? 0 : (padding - phase + phases - 1) / phases;
          const int n = (columns + padding - phase + phases - 1) / phases - j0;
          const Scalar* s = from + (j0 * phases + phase - padding) * channels;
          Scalar* to = row + phase * width + j0;
          for (int j = 0; j < n; ++j) to[j] = s[j * phases * channels];
        }
      }
  }
  static void put(const Scalar* values, Scalar* out, Scalar* to) {
    interleave<filters>(values, line_pitch, line, out);
    std::memcpy(to, out, 1L * line * filters * sizeof(Scalar));
  }

  /// One row of outputs, as `filters` lines of values; winners: plane of filter f at f * winner_plane().
  static SKEIN_NOINLINE void lines(const Scalar* planes, const Scalar* packed, const Scalar* bias, Scalar* values,
                                   ArgMax* winners) {
    for (int j = 0; j < line; j += lanes)
      for (int b = 0; b < blocks; ++b) {
        V sum[together][places];
#pragma GCC unroll 16
        for (int f = 0; f < together; ++f)
#pragma GCC unroll 16
          for (int q = 0; q < places; ++q) sum[f][q] = V(bias[b * together + f]);
        const Scalar* w = packed + b * taps * together;
        for (int c = 0; c < P.conv().channels; ++c) {
          const Scalar* from = planes + c * plane_rows * row_pitch + j;
          for (int ky = 0; ky < kernel; ++ky, from += row_pitch) {
#pragma GCC unroll 16
            for (int kx = 0; kx < kernel; ++kx, w += together) {
              forget(from);
              V weight[together];
#pragma GCC unroll 16
              for (int f = 0; f < together; ++f) weight[f] = V(w[f]);
#pragma GCC unroll 16
              for (int q = 0; q < places; ++q) {
                const int column = q % window * stride + kx;
                V x = load_from<V>(from + q / window * stride * row_pitch + column % phases * width + column / phases);
                keep(x);
#pragma GCC unroll 16
                for (int f = 0; f < together; ++f) sum[f][q] = fused(x, weight[f], sum[f][q]);
              }
            }
          }
        }
#pragma GCC unroll 16
        for (int f = 0; f < together; ++f) finish(sum[f], b * together + f, j, values, winners);
      }
  }
  static SKEIN_ALWAYS_INLINE void finish(V (&sum)[places], int f, int j, Scalar* values, ArgMax* winners) {
    const V zero(Scalar(0));
    V best = sum[0];
    if constexpr (by_channel) {
      V place(zero);
#pragma GCC unroll 16
      for (int q = 1; q < places; ++q) {
        const auto wins = (sum[q] > best) | ~(sum[q] == sum[q]);  // a NaN does, as in all other pooling
        best = xsimd::select(wins, sum[q], best);
        place = xsimd::select(wins, V(static_cast<Scalar>(q)), place);
      }
      if (P.g.relu) place = xsimd::select(best <= zero, V(static_cast<Scalar>(no_winner)), place);
      if (f < filters) store_bytes<lanes>(winners + f * P.winner_plane() + j, place);
    }
    if (P.g.relu && (by_channel || !P.g.pooled())) best = xsimd::max(zero, best);
    store_to(values + f * line_pitch + j, best);
  }
};

}  // namespace skein::inline SKEIN_ABI::ops::cpu
SKEIN_END_UNROLLED
#endif
