// SPDX-License-Identifier: Apache-2.0
// The gradient of the input of a convolution with a stride: pixels of the input that are a stride apart see the same places of
// the window, so those of each phase are a convolution of their own over the outputs' gradients, without its zeros: of a window
// of 3 x 3 and a stride of 2 the four phases have 1, 2, 2 and 4 places.
//
//     P the plan; dx the gradient of an image (height, width, channels), dz (pixels, filters) that of its outputs, w weights; y a
//     row of the image, i a column of a phase, p a pixel of a block, v a vector of channels, kx, ky a place of the window; V a
//     vector of Scalar
#pragma once
#include <algorithm>
#include <utility>

#include "direct_filters.hpp"

#if SKEIN_WITH_XSIMD

SKEIN_BEGIN_UNROLLED
namespace skein::inline SKEIN_ABI::ops::cpu {

/// The gradient of the input of one image, in vectors over the channels. Nothing is pooled.
template <class Scalar, DirectPlan P> struct StridedData {
  static constexpr int channels = P.conv().channels, filters = P.conv().filters, stride = P.conv().stride;
  static constexpr int kernel = P.conv().kernel, padding = P.conv().padding;
  static constexpr int lanes = best_lanes<Scalar>(channels), vectors = channels / lanes;
  using V = Vector<Scalar, lanes>;

  static constexpr bool possible() { return P.strides_data() && channels % lanes == 0 && whole(); }

  /// transposed: (kernel, kernel, filters, row_pitch(channels)), the weights' places as they are.
  static void turn(const Scalar* weight, Scalar* to) {
    for (int t = 0; t < kernel * kernel; ++t)
      for (int f = 0; f < filters; ++f)
        for (int c = 0; c < channels; ++c)
          to[(1L * t * filters + f) * row_pitch(channels) + c] = weight[(1L * t * channels + c) * P.conv().weight_pitch() + f];
  }
  /// dz: (out_height, out_width, filters). adds: to dx, else it is written. (Zeros and workspace are DenseData's.)
  static void image(const Scalar* dz, const Scalar* transposed, const Scalar*, Scalar* dx, Scalar*, bool adds) {
    for (int y = 0; y < P.conv().height; ++y) [&]<int... Phase>(std::integer_sequence<int, Phase...>) {
        (row<Phase>(dz, y, transposed, dx + 1L * y * P.conv().width * channels, adds), ...);
      }
    (std::make_integer_sequence<int, stride>{});
  }

 private:
  static constexpr int chunk = vectors % 4 == 0 && accumulators >= 24 ? 4 : vectors % 2 == 0 ? 2 : 1;
  static constexpr int most = accumulators / chunk < 12 ? accumulators / chunk : 12;  // pixels of a block
  static constexpr int out_width = P.conv().out_width(), out_height = P.conv().out_height();

  /// The columns of one phase: phase, phase + stride, ...
  struct Columns {
    int phase;
    constexpr int count() const { return (P.conv().width - phase + stride - 1) / stride; }
    constexpr int blocks() const { return (count() + most - 1) / most; }
    constexpr int pixels() const { return (count() + blocks() - 1) / blocks(); }
    constexpr int last() const { return count() - (blocks() - 1) * pixels(); }
    /// Does place kx of the window meet these columns, and of column i of the phase which output is it?
    constexpr bool meets(int kx) const { return (phase + padding - kx) % stride == 0; }
    constexpr int shift(int kx) const { return (phase + padding - kx) / stride; }
    /// Only the first and the last block see columns that no output has.
    constexpr bool inner_blocks_are_whole() const {
      for (int kx = 0; kx < kernel && count() > 0 && blocks() > 1; ++kx)
        if (meets(kx) && (pixels() + shift(kx) < 0 || count() - last() + shift(kx) > out_width)) return false;
      return true;
    }
  };
  static constexpr bool whole() {
    for (int phase = 0; phase < stride; ++phase)
      if (!Columns{phase}.inner_blocks_are_whole()) return false;
    return true;
  }

  template <int Phase> static void row(const Scalar* dz, int y, const Scalar* w, Scalar* dx, bool adds) {
    constexpr Columns all{Phase};
    if constexpr (all.count() > 0) {
      constexpr int pixels = all.pixels(), last = all.last();
      if constexpr (all.blocks() > 1) {
        block<Phase, pixels, true, false>(dz, y, 0, w, dx, adds);
        int i = pixels;
        for (; i + last < all.count(); i += pixels) block<Phase, pixels, false, false>(dz, y, i, w, dx, adds);
        block<Phase, last, false, true>(dz, y, i, w, dx, adds);
      } else {
        block<Phase, last, true, true>(dz, y, 0, w, dx, adds);
      }
    }
  }
  /// So many columns of the phase from the i-th on; First: i is 0, Last: none is behind them.
  template <int Phase, int Pixels, bool First, bool Last>
  static SKEIN_NOINLINE void block(const Scalar* dz, int y, int i, const Scalar* transposed, Scalar* dx, bool adds) {
    constexpr long pixel = 1L * stride * channels;
    dx += (1L * i * stride + Phase) * channels;
    for (int p = 0; p < Pixels; ++p)
      __builtin_prefetch(dx + (1L * P.conv().width + p * stride) * channels, 1, 2);  // the next row
    for (int first = 0; first < vectors; first += chunk) {
      V sum[Pixels][chunk];
#pragma GCC unroll 16
      for (int p = 0; p < Pixels; ++p)
#pragma GCC unroll 16
        for (int v = 0; v < chunk; ++v) sum[p][v] = adds ? load_from<V>(dx + p * pixel + (first + v) * lanes) : V(Scalar(0));
      for (int ky = 0; ky < kernel; ++ky) {
        const int place = y + padding - ky;
        if (place < 0 || place % stride != 0 || place / stride >= out_height) continue;
        const Scalar* from = dz + (1L * (place / stride) * out_width + i) * filters;
        [&]<int... Kx>(std::integer_sequence<int, Kx...>) __attribute__((always_inline)) {
          (column<Phase, Pixels, First, Last, Kx>(
               sum, from, transposed + (1L * ky * kernel + Kx) * filters * row_pitch(channels) + first * lanes),
           ...);
        }
        (std::make_integer_sequence<int, kernel>{});
      }
#pragma GCC unroll 16
      for (int p = 0; p < Pixels; ++p)
#pragma GCC unroll 16
        for (int v = 0; v < chunk; ++v) store_to(dx + p * pixel + (first + v) * lanes, sum[p][v]);
    }
  }
  /// Column Kx of the window, for the pixels whose output there is. from: the output of the block's first column, unshifted.
  template <int Phase, int Pixels, bool First, bool Last, int Kx>
  static SKEIN_ALWAYS_INLINE void column(V (&sum)[Pixels][chunk], const Scalar* from, const Scalar* w) {
    constexpr Columns all{Phase};
    if constexpr (all.meets(Kx)) {
      constexpr int shift = all.shift(Kx), begin = First ? std::clamp(-shift, 0, Pixels) : 0;
      constexpr int end = Last ? std::clamp(out_width - shift - (all.count() - Pixels), begin, Pixels) : Pixels;
      if constexpr (begin < end)
        add_taps<begin, end, filters, row_pitch(channels), filters>(sum, from + (shift + begin) * filters, w);
    }
  }
};

}  // namespace skein::inline SKEIN_ABI::ops::cpu
SKEIN_END_UNROLLED
#endif
