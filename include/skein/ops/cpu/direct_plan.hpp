// SPDX-License-Identifier: Apache-2.0
// What the direct convolution kernels take, and where their pieces lie: a convolution of few channels, alone or with the ReLU
// and the max-pooling behind it. Plain constexpr values that do not depend on the scalar type or the instruction set, since a
// layer declares its memory before it knows them.
#pragma once
#include "../reference/conv2d.hpp"
#include "../reference/pool2d.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// A convolution, then max(0, .) or not, then max-pooling or not (pool_kernel 1: none).
struct ConvReluPoolGeometry {
  Conv2dGeometry conv{};
  bool relu = false;
  int pool_kernel = 1, pool_stride = 1, pool_padding = 0;

  constexpr bool pooled() const { return pool_kernel > 1 || pool_stride > 1; }
  constexpr Pool2dGeometry pool() const {
    return {conv.out_height(), conv.out_width(), conv.filters, pool_kernel, pool_stride, pool_padding};
  }
  constexpr int out_height() const { return pool().out_height(); }
  constexpr int out_width() const { return pool().out_width(); }
  constexpr long pixels() const { return 1L * out_height() * out_width(); }
  constexpr long out_count() const { return pixels() * conv.filters; }
  friend constexpr bool operator==(const ConvReluPoolGeometry&, const ConvReluPoolGeometry&) = default;
};

namespace cpu {

/// Nothing is called behind an image's forward pass.
struct NothingDone {
  void operator()(long) const {}
};
/// The gradient of the convolution's output is dy.
struct NothingMade {};

/// The winner of an output that ReLU has switched off.
inline constexpr ArgMax no_winner = 255;

/// The geometry in the numbers that the kernels use. "Padded": the input with its zeros around it.
struct DirectPlan {
  ConvReluPoolGeometry g{};

  constexpr const Conv2dGeometry& conv() const { return g.conv; }
  constexpr int windows() const { return g.pool_kernel * g.pool_kernel; }
  constexpr int row_values() const { return conv().kernel * conv().channels; }  // of a patch: contiguous
  constexpr long row_values_pitch() const { return whole_line(row_values()); }
  constexpr long taps() const { return 1L * conv().kernel * conv().kernel * conv().channels; }
  constexpr long padded_width() const { return conv().width + 2 * conv().padding; }
  constexpr long padded_height() const { return conv().height + 2 * conv().padding; }
  constexpr long padded_row() const { return padded_width() * conv().channels; }
  constexpr long padded_image() const { return whole_line(padded_height() * padded_row() + row_values_pitch() + 16); }

  /// The kernels that vectorise over the width keep the winners by channel, the others by pixel.
  constexpr long winner_plane() const { return (g.pixels() + 15 + 16) / 16 * 16; }
  constexpr long winner_bytes() const { return g.pooled() ? conv().filters * winner_plane() : 0; }

  // Vectors over the width: the columns of the input by their phase, so that neighbouring outputs read neighbouring columns.
  constexpr bool whole_windows() const { return g.pool_kernel <= g.pool_stride && g.pool_padding == 0 && windows() <= 9; }
  constexpr int window() const { return whole_windows() ? g.pool_kernel : 1; }  // outputs computed together
  constexpr int window_stride() const { return whole_windows() ? g.pool_stride : 1; }
  constexpr int line() const { return whole_windows() ? g.out_width() : conv().out_width(); }  // outputs a row
  constexpr int phases() const { return window_stride() * conv().stride; }
  constexpr long phase_width() const {
    return whole_line((padded_width() + phases() - 1) / phases() + (conv().kernel + window() * conv().stride) / phases() + 1 +
                      16);
  }
  constexpr long planes() const {
    const long rows = padded_height() + conv().kernel + phases();
    return conv().channels * rows * phases() * phase_width();
  }

  /// Backward reads a copy of the image with its padding: where the channels are too few for a place of the window to fill the
  /// registers, or where something is pooled.
  constexpr bool pads_backward() const { return g.pooled() || conv().channels < 16; }
  /// The convolution that makes dx of dy, where it is one: stride 1, nothing pooled.
  constexpr bool turns() const {
    return !g.pooled() && conv().stride == 1 && conv().padding < conv().kernel && conv().channels <= 512 && conv().filters <= 512;
  }
  constexpr DirectPlan transposed() const {
    const Conv2dGeometry& c = conv();
    if (!turns()) return {};
    return {{{c.out_height(), c.out_width(), c.filters, c.channels, c.kernel, 1, c.kernel - 1 - c.padding}}};
  }

  /// dx of dy is a convolution for each phase of a stride.
  constexpr bool strides_data() const {
    return !g.pooled() && !g.relu && conv().stride > 1 && conv().channels >= 16 && conv().channels <= 512 &&
           conv().filters <= 512;
  }

  // Derived weights.
  constexpr long padded_filters() const { return whole_line(conv().filters) + 16; }
  constexpr long bias_at() const { return 0; }
  constexpr long packed_at() const { return padded_filters(); }  // for vectors over the width
  constexpr long packed() const { return conv().channels <= 8 ? whole_line((conv().filters + 26) * taps()) : 0; }
  constexpr long flipped_at() const { return packed_at() + packed(); }  // (filters, kernel, row_values_pitch)
  constexpr long flipped() const { return conv().filters * conv().kernel * row_values_pitch(); }
  constexpr long flipped_or_turned() const {
    const long transposed =
        turns() || strides_data() ? 1L * conv().kernel * conv().kernel * conv().filters * row_pitch(conv().channels) : 0;
    return whole_line(transposed > flipped() ? transposed : flipped());
  }
  constexpr long packed_weights() const { return flipped_at() + flipped_or_turned(); }

  // Workspace. Forward and backward use it in turn.
  constexpr long rows_pitch() const { return whole_line(conv().filters); }  // a pixel of `rows`
  constexpr long rows() const { return whole_line(g.pool_kernel * conv().out_width() * rows_pitch() + 32); }
  constexpr long lines() const { return padded_filters() * whole_line(line() + 16); }
  constexpr long forward_image() const { return conv().channels <= 8 && planes() > padded_image() ? planes() : padded_image(); }
  constexpr long rows_at() const { return forward_image(); }
  constexpr long values_at() const { return rows_at() + rows(); }
  constexpr long places_at() const { return values_at() + lines(); }
  constexpr long output_row_at() const { return places_at() + lines(); }
  constexpr long forward_workspace() const { return output_row_at() + whole_line((line() + 16L) * conv().filters + 32); }

  constexpr int group() const {  // images between two loads of the weights' gradient
    const long n = 8192 / (padded_image() > 0 ? padded_image() : 1);
    return n < 1 ? 1 : n > 4 ? 4 : static_cast<int>(n);
  }
  constexpr long masked() const { return whole_line(g.out_count() + 16); }
  constexpr long masked_at() const { return group() * padded_image(); }
  constexpr long dweight_at() const { return masked_at() + group() * masked(); }
  constexpr long dx_at() const { return dweight_at() + flipped(); }
  constexpr long transposed_at() const { return dx_at(); }  // the turned convolution's own
  constexpr long zeros_at() const { return dx_at() + (turns() ? transposed().padded_image() + transposed().rows() : 0); }
  constexpr long alive_at() const {
    return zeros_at() > dx_at() + padded_image() ? zeros_at() : dx_at() + padded_image();
  }  // bytes, where nothing pools
  constexpr long backward_workspace() const {
    return alive_at() + whole_line(g.out_count() + 16) + whole_line(conv().channels) + 16;
  }
  constexpr long workspace() const {
    return forward_workspace() > backward_workspace() ? forward_workspace() : backward_workspace();
  }
};

}  // namespace cpu

}  // namespace skein::inline SKEIN_ABI::ops
