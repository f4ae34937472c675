// SPDX-License-Identifier: Apache-2.0
// Forward pass of a direct convolution that vectorises over the filters: blocks of some pixels of a row by some vectors of
// filters stay in registers, over the contiguous values of each row of a patch. Weights as they are in the arena; the zeros of a
// padding are neither copied nor multiplied by: at 8 x 8 pixels and 3 x 3 windows they would be a sixth of the work.
//
//     P the plan, g the geometry; x an image (height, width, channels), y its output (pixels, filters), w weights of a tap;
//     r a row of outputs, p a pixel of it, v a vector of filters, k a value of a row of a patch, kx, ky a place of the window;
//     V a vector of Scalar, B a block of pixels
#pragma once
#include <algorithm>
#include <utility>

#include "direct_rows.hpp"

#if SKEIN_WITH_XSIMD

SKEIN_BEGIN_UNROLLED
namespace skein::inline SKEIN_ABI::ops::cpu {

/// sum[p] += x[p][k] by the row w, for the pixels p of [Begin, End). x: pixel Begin's first value, those of the next one Step
/// behind it; w: Vectors of them.
template <int Begin, int End, long Step, class V, class Scalar, int Pixels, int Vectors>
SKEIN_ALWAYS_INLINE void add_tap(V (&sum)[Pixels][Vectors], const Scalar* x, int k, const Scalar* w) {
  V taps[Vectors];
#pragma GCC unroll 16
  for (int v = 0; v < Vectors; ++v) {
    taps[v] = load_from<V>(w + v * static_cast<int>(V::size));
    keep(taps[v]);
  }
#pragma GCC unroll 16
  for (int p = Begin; p < End; ++p) {
    const V value(x[(p - Begin) * Step + k]);
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) sum[p][v] = fused(value, taps[v], sum[p][v]);
  }
}
/// What is asked for while sums are made: for each value of a patch so many values of what is read and of what is written a while
/// later. A line now and then: many at once wait for each other, and the sums for them.
template <class Scalar, int Reads = 0, int Writes = 0> struct Ahead {
  const Scalar *read, *write;
  static constexpr int line = 64 / static_cast<int>(sizeof(Scalar)), most = std::max(Reads, Writes);
  static constexpr int every = most <= line / 4 ? 4 : most <= line / 2 ? 2 : 1;  // values between two lines

  SKEIN_ALWAYS_INLINE void ask(int k) const {
    if (k % every != 0) return;
    if constexpr (Reads > 0) __builtin_prefetch(read + k * Reads);
    if constexpr (Writes > 0) __builtin_prefetch(write + k * Writes, 1);
  }
  SKEIN_ALWAYS_INLINE Ahead from(int k) const { return {read + k * Reads, write + k * Writes}; }
};
template <class Scalar> struct Ahead<Scalar, 0, 0> {  // nothing
  static constexpr int every = 1;
  void ask(int) const {}
  Ahead from(int) const { return {}; }
};
/// Does add_tap() for k in [0, Values), each by a row of w, which lie Pitch apart. The end of a short loop, which the processor
/// does not foresee, costs a third of it: up to Unrolled values it is unrolled, value by value: else the compiler loads one for
/// several k, and spills it, which only saves time where each serves one vector. With many registers longer loops take four at a
/// time (16 to 32 with a stride, AVX-512: 0.97 of the time; with 16 registers 32 to 32 took 1.04).
template <int Begin, int End, long Step, long Pitch, int Values, int Unrolled = 9, class V, class Scalar, int Pixels, int Vectors,
          class Asked = Ahead<Scalar>>
SKEIN_ALWAYS_INLINE void add_taps(V (&sum)[Pixels][Vectors], const Scalar* x, const Scalar* w, Asked ahead = {}) {
  if constexpr (Begin >= End) return;
  else if constexpr (Values <= Unrolled) {
#pragma GCC unroll 21
    for (int k = 0; k < Values; ++k, ++x, w += Pitch) {
      ahead.ask(k);
      if constexpr (Vectors > 1) forget(x, w);
      add_tap<Begin, End, Step>(sum, x, 0, w);
    }
  } else {
    constexpr int together = accumulators >= 24 && Vectors > 1 && Values % 4 == 0 ? 4 : 1;
    for (int k = 0; k < Values; k += together) {
#pragma GCC unroll 4
      for (int i = 0; i < together; ++i, w += Pitch) {
        if (together == 1 || i % Asked::every == 0) ahead.ask(k + i);
        if constexpr (together > 1) forget(x, w);
        add_tap<Begin, End, Step>(sum, x, k + i, w);
      }
    }
  }
}

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
    Scalar* ring = workspace + P.rows_at();
    if constexpr (!P.g.pooled()) {
      for (int r = 0; r < rows; ++r) {
        Scalar* to = y + 1L * r * columns * filters;
        row(x, r, weight, adds ? Start{to, pitch} : Start{bias, 0}, pitch == filters ? to : ring);
        if (pitch != filters)
          for (int p = 0; p < columns; ++p) std::memcpy(to + 1L * p * filters, ring + 1L * p * pitch, filters * sizeof(Scalar));
      }
    } else {
      int next = 0;
      for (int r = 0; r < P.g.out_height(); ++r) {
        const int top = r * P.g.pool_stride - P.g.pool_padding, end = top + P.g.pool_kernel < rows ? top + P.g.pool_kernel : rows;
        for (next = next < top ? top : next; next < end; ++next)
          row(x, next, weight, {bias, 0}, ring + 1L * (next % P.g.pool_kernel) * columns * pitch);
        const long at = 1L * r * P.g.out_width() * filters;
        PoolRows<Scalar, P, pitch>::run(ring, r, y + at, winners + at);
      }
    }
  }

 private:
  static constexpr int most_vectors = accumulators >= 24 ? 4 : 3;
  /// Vectors a block. Where a whole row of pixels fits beside two of them, two: four over half a row fetch twice the weights, and
  /// those of many channels come from the second-level cache (64 to 64, 8 x 8, AVX-512: 0.95 of the time, 32 to 64 with a stride
  /// 0.9).
  static constexpr int chunk() {
    if (columns <= 12 && 2 * columns <= accumulators && vectors % 2 == 0) return 2;
    for (int n = most_vectors; n > 1; --n)
      if (vectors % n == 0) return n;
    return 1;
  }
  static constexpr int most_pixels = accumulators / chunk() < 12 ? accumulators / chunk() : 12;
  static constexpr int blocks = (columns + most_pixels - 1) / most_pixels;
  static constexpr int pixels = columns / blocks, wider = columns % blocks;  // the first `wider` blocks have one more
  /// Blocks that are neither the first nor the last of a row see the padding too: then pixels go one by one.
  static constexpr bool narrow = [] {
    constexpr const Conv2dGeometry& g = P.g.conv;
    const int first = pixels + (wider > 0), inner = columns - pixels - 1;
    return blocks > 1 && (first * g.stride < g.padding || inner * g.stride + g.kernel - 1 - g.padding >= g.width);
  }();

  /// What the sums of a row begin with: the bias for each pixel, or what is there.
  struct Start {
    const Scalar* at;
    long pitch;
    Start from(long pixel) const { return {at + pixel * pitch, pitch}; }
  };

  /// The processor's own prefetching does not keep up with blocks of pixels, which read a part of one row after the other, nor
  /// with what they write. So a block asks for its share of the rows behind the window, and of what is written some blocks later.
  /// With one vector a block has loads enough: there only where few values make an output. AVX-512 on Intel, the time of before:
  /// 16 to 32 with a stride 0.83, 32 to 64 0.86, 64 to 64 0.91 (these with the loops of four), 3 to 16 0.8; 16 to 16 1.17.
  static constexpr bool few_values = accumulators >= 24 && P.row_values() <= 9;  // unrolled
  static constexpr bool asks_reads = accumulators >= 24 && chunk() > 1 && conv().kernel >= conv().stride && !narrow;
  static constexpr bool asks_writes = (asks_reads || few_values) && !narrow && pitch == filters && !P.g.pooled();
  template <int Pixels> static SKEIN_ALWAYS_INLINE auto ahead(const Scalar* x, int pixel, long offset, const Scalar* to) {
    constexpr long behind = (P.conv().padding + 1L * P.conv().kernel * P.conv().width) * P.conv().channels;
    constexpr long row = 1L * P.conv().width * P.conv().channels, work = P.taps() * filters;  // work: of a pixel
    constexpr long rows_later = std::min(8L, 100'000 / (columns * work)), blocks_later = 1 + 40'000 / (Pixels * work);
    constexpr long read = P.conv().stride * row / columns, values = P.taps() * (pitch / (chunk() * lanes));
    constexpr auto share = [](long n) { return static_cast<int>((Pixels * n + values - 1) / values); };
    constexpr int reads = share(asks_reads ? read : 0), writes = share(asks_writes ? pitch : 0);
    if constexpr (!asks_reads && !asks_writes) return Ahead<Scalar>{};
    else
      return Ahead<Scalar, reads, writes>{x + (offset + behind + rows_later * row + pixel * read),
                                          to + blocks_later * Pixels * pitch};
  }
  /// The same where a window of few places leaves pixels out, or where there is one vector. `patch`: where the first of the
  /// pixels sees the window. Asks for what these pixels are the first to read in a row of outputs about a microsecond later, of
  /// its row y: a part with each row of the window, since all at once wait for each other.
  template <int Pixels> static SKEIN_ALWAYS_INLINE void prefetch(const Scalar* patch, int y) {
    constexpr const Conv2dGeometry& g = P.g.conv;
    constexpr long work = 1L * columns * P.taps() * filters, later = std::min(8L, 1 + 40'000 / work);  // rows
    constexpr int line = 64 / static_cast<int>(sizeof(Scalar)), used = std::min(step, P.row_values());
    constexpr long from = (later - 1) * g.stride + std::max(g.kernel, g.stride), row = 1L * g.width * g.channels;
    if (y < std::min(g.kernel, g.stride))
      for (int p = 0; p < Pixels; ++p)
        for (int k = 0; k < used; k += line) __builtin_prefetch(patch + (from + y) * row + p * step + k);
  }
  /// Row r of the outputs, of the image x.
  static void row(const Scalar* x, int r, const Scalar* weight, Start start, Scalar* to) {
    const Rows window(r);
    const auto next = [&]<int Pixels, bool Left, bool Right>(Block<Pixels, Left, Right> b, int p) {
      block(b, x, p, window, weight, start.from(p), to + 1L * p * pitch);
      return p + Pixels;
    };
    if constexpr (narrow) {
      for (int p = 0; p < columns;) p = next(Block<1, true, true>{}, p);
    } else if constexpr (blocks == 1) {
      next(Block<columns, true, true>{}, 0);
    } else {
      int p = next(Block<(wider > 0 ? pixels + 1 : pixels), true, false>{}, 0);
      if constexpr (wider > 1)
        while (p < wider * (pixels + 1)) p = next(Block<pixels + 1, false, false>{}, p);
      if constexpr (blocks - wider > 1 + (wider == 0))
        while (p < columns - pixels) p = next(Block<pixels, false, false>{}, p);
      next(Block<pixels, false, true>{}, p);
    }
  }
  /// The rows of the window that lie in the image, for an output row, and where the window begins: offset may be negative.
  struct Rows {
    int begin, end;
    long offset;
    explicit Rows(int r) {
      constexpr const Conv2dGeometry& g = P.g.conv;
      const int top = r * g.stride - g.padding;
      begin = top < 0 ? -top : 0;
      end = g.height - top < g.kernel ? g.height - top : g.kernel;
      offset = (1L * top * g.width - g.padding) * g.channels;
    }
  };
  /// So many pixels of a row; Left: from its first one on, Right: up to its last one. There some columns of the window see
  /// nothing but the padding, which costs nothing and is not in memory.
  template <int Pixels, bool Left, bool Right> struct Block {
    static constexpr bool whole = P.conv().padding == 0 || !(Left || Right);
    /// The pixels for which column kx of the window lies in the image: [begin, end).
    static constexpr int begin(int kx) {
      const int outside = P.conv().padding - kx, stride = P.conv().stride;
      return Left && outside > 0 ? std::min(Pixels, (outside + stride - 1) / stride) : 0;
    }
    static constexpr int end(int kx) {
      const int inside = P.conv().width + P.conv().padding - kx, stride = P.conv().stride;
      return Right ? std::clamp((inside + stride - 1) / stride - (columns - Pixels), begin(kx), Pixels) : Pixels;
    }
  };
  template <int Pixels, bool Left, bool Right> static SKEIN_NOINLINE void block(Block<Pixels, Left, Right>, const Scalar* x,
                                                                                int pixel, Rows window, const Scalar* weight,
                                                                                Start start, Scalar* to) {
    constexpr int Vectors = chunk();
    using B = Block<Pixels, Left, Right>;
    for (int first = 0; first < pitch; first += Vectors * lanes) {
      V sum[Pixels][Vectors];
#pragma GCC unroll 16
      for (int p = 0; p < Pixels; ++p)
#pragma GCC unroll 16
        for (int v = 0; v < Vectors; ++v) sum[p][v] = load_from<V>(start.at + p * start.pitch + first + v * lanes);
      const auto asked = ahead<Pixels>(x, pixel, window.offset, to);
      for (int ky = window.begin; ky < window.end; ++ky) {
        const auto now = asked.from((first / (Vectors * lanes) * P.conv().kernel + ky) * P.row_values());
        if constexpr (conv().stride > 1 && !asks_reads)
          if (first + Vectors * lanes >= pitch)
            prefetch<Pixels>(x + window.offset + (conv().padding * conv().channels + pixel * step), ky - window.begin);
        const Scalar* w = weight + first + 1L * ky * P.row_values() * P.conv().weight_pitch();
        const long from = window.offset + pixel * step + 1L * ky * P.conv().width * P.conv().channels;
        if constexpr (B::whole) {
          constexpr int unrolled = P.conv().kernel > 1 ? 21 : 9;  // seven pixels of three colours
          add_taps<0, Pixels, step, P.conv().weight_pitch(), P.row_values(), unrolled>(sum, x + from, w, now);
        } else if constexpr (narrow) {
          constexpr int n = P.conv().channels;
          for (int kx = 0; kx < P.conv().kernel; ++kx)
            if (const int column = pixel * P.conv().stride - P.conv().padding + kx; column >= 0 && column < P.conv().width)
              add_taps<0, Pixels, step, P.conv().weight_pitch(), n>(sum, x + (from + kx * n),
                                                                    w + 1L * kx * n * P.conv().weight_pitch());
        } else {
          add_columns<B>(sum, x, from, w, now);
        }
      }
#pragma GCC unroll 16
      for (int p = 0; p < Pixels; ++p)
#pragma GCC unroll 16
        for (int v = 0; v < Vectors; ++v) {
          if (P.g.relu && !P.g.pooled()) sum[p][v] = xsimd::max(V(Scalar(0)), sum[p][v]);  // NaN stays
          store_to(to + p * pitch + first + v * lanes, sum[p][v]);
        }
    }
  }
  /// A row of the window from column Kx on: columns that the same pixels see as one, since the end of a loop costs time.
  template <class B, int Kx = 0, int Pixels, int Vectors, class Asked>
  static SKEIN_ALWAYS_INLINE void add_columns(V (&sum)[Pixels][Vectors], const Scalar* x, long from, const Scalar* w, Asked a) {
    constexpr int n = P.conv().channels, kernel = P.conv().kernel, begin = B::begin(Kx), end = B::end(Kx);
    constexpr int next = [] {
      int at = Kx + 1;
      while (at < kernel && B::begin(at) == begin && B::end(at) == end) ++at;
      return at;
    }();
    add_taps<begin, end, step, P.conv().weight_pitch(), (next - Kx) * n>(sum, x + (from + Kx * n + begin * step),
                                                                         w + Kx * n * P.conv().weight_pitch(), a.from(Kx * n));
    if constexpr (next < kernel) add_columns<B, next>(sum, x, from, w, a);
  }
};

}  // namespace skein::inline SKEIN_ABI::ops::cpu
SKEIN_END_UNROLLED
#endif
