// SPDX-License-Identifier: Apache-2.0
// Convolution (a cross-correlation, as the field has it) along one, two or three dimensions as plain loops over images whose
// channels are last: the oracle of the tests, and what runs where no other kernel takes a geometry. Geometry and memory of a call
// are described here for all back ends.
//
//     c the call, g the geometry; x an image, y its output, dx, dy the gradients, w weights of a tap, dw their gradient; n a
//     sample, f a filter, i a channel of the input, o an output; kx, ky, kz a place of the window, ix, iy, iz a pixel of the
//     input; in Conv2dGeometry, along one dimension: o an output, i an input, k a place of the window
#pragma once
#include "../../core/shape.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// A convolution of square windows over images (height, width, channels); with another number of dimensions of the window over
/// sequences, which are images of height 1, or over volumes (depth, height, width, channels), by cubes. Integers only: it may be
/// a template argument.
struct Conv2dGeometry {
  int height = 1, width = 1, channels = 1;  ///< of the input
  int filters = 1;                          ///< output channels
  int kernel = 1, stride = 1, padding = 0, dilation = 1, groups = 1;
  int dimensions = 2;  ///< of the window: 1: it moves along the width alone, 3: along the depth too
  int depth = 1;       ///< of the input, where there are three

  // Per dimension: the window's side, and the zeros before and behind the input.
  constexpr int window_height() const { return dimensions > 1 ? kernel : 1; }
  constexpr int window_depth() const { return dimensions > 2 ? kernel : 1; }
  constexpr int padding_height() const { return dimensions > 1 ? padding : 0; }
  constexpr int stride_height() const { return dimensions > 1 ? stride : 1; }
  constexpr int dilation_height() const { return dimensions > 1 ? dilation : 1; }

  constexpr int reach() const { return dilation * (kernel - 1) + 1; }
  constexpr bool fits() const {
    return fits_into(width) && (dimensions < 2 || fits_into(height)) && (dimensions < 3 || fits_into(depth));
  }
  constexpr int out_width() const { return out_side(width); }
  constexpr int out_height() const { return dimensions > 1 ? out_side(height) : height; }
  constexpr int out_depth() const { return dimensions > 2 ? out_side(depth) : depth; }
  constexpr int group_channels() const { return channels / groups > 0 ? channels / groups : 1; }
  constexpr int group_filters() const { return filters / groups > 0 ? filters / groups : 1; }
  constexpr long in_pixels() const { return 1L * depth * height * width; }
  constexpr long out_pixels() const { return 1L * out_depth() * out_height() * out_width(); }
  constexpr long in_count() const { return in_pixels() * channels; }
  constexpr long out_count() const { return out_pixels() * filters; }
  constexpr int window_count() const { return window_depth() * window_height() * kernel; }
  /// Rows of the weight: (window, channels / groups), each of row_pitch(filters) scalars.
  constexpr long weight_rows() const { return 1L * window_count() * group_channels(); }
  constexpr long weight_pitch() const { return row_pitch(filters); }
  /// Multiplications and additions of one sample's forward pass, bias not counted.
  constexpr long flops() const { return 2L * out_pixels() * filters * weight_rows(); }

  /// Which row of the input tap k of the window of output row `o` reads; negative: none. In a dimension in which the window does
  /// not move that is the row itself.
  constexpr int in_column(int o, int k) const { return input(o, k, width); }
  constexpr int in_row(int o, int k) const { return dimensions > 1 ? input(o, k, height) : o; }
  constexpr int in_slice(int o, int k) const { return dimensions > 2 ? input(o, k, depth) : o; }
  /// Which output's tap k reads this row of the input; -1: none.
  constexpr int out_column(int i, int k) const { return output(i, k, out_width()); }
  constexpr int out_row(int i, int k) const { return dimensions > 1 ? output(i, k, out_height()) : i; }
  constexpr int out_slice(int i, int k) const { return dimensions > 2 ? output(i, k, out_depth()) : i; }

  friend constexpr bool operator==(const Conv2dGeometry&, const Conv2dGeometry&) = default;

 private:
  constexpr bool fits_into(int side) const { return side + 2 * padding >= reach(); }
  constexpr int out_side(int side) const { return fits() ? (side + 2 * padding - reach()) / stride + 1 : 1; }
  constexpr int input(int o, int k, int side) const {
    const int i = o * stride + k * dilation - padding;
    return i < side ? i : -1;
  }
  constexpr int output(int i, int k, int side) const {
    const int at = i + padding - k * dilation;
    return at >= 0 && at % stride == 0 && at / stride < side ? at / stride : -1;
  }
};

/// The memory of one call: `batch` dense images. Gradients are added to; dx is written. Null, on the Cpu: nobody wants it.
template <class Scalar> struct Conv2dCall {
  long batch = 0;
  const Scalar* x = nullptr;       ///< (batch, depth, height, width, channels)
  const Scalar* weight = nullptr;  ///< (weight_rows, weight_pitch)
  const Scalar* bias = nullptr;    ///< (weight_pitch); null: none
  Scalar* y = nullptr;             ///< (batch, out_depth, out_height, out_width, filters)
  const Scalar* dy = nullptr;
  Scalar* dx = nullptr;
  bool adds_dx = false;  ///< adds to dx what else is written; of kernels that say so
  Scalar* dweight = nullptr;
  Scalar* dbias = nullptr;
  Scalar* packed_weights = nullptr;  ///< what pack_weights() made of the weights
  Scalar* workspace = nullptr;
};

namespace reference {

namespace detail {
/// Calls visit(offset of the input pixel, first weight row) for each tap of the window of an output pixel inside the image.
template <class Visit> void each_tap(const Conv2dGeometry& g, long pixel, Visit&& visit) {
  const int column = static_cast<int>(pixel % g.out_width()), row = static_cast<int>(pixel / g.out_width() % g.out_height()),
            slice = static_cast<int>(pixel / g.out_width() / g.out_height());
  for (int kz = 0; kz < g.window_depth(); ++kz) {
    const int iz = g.in_slice(slice, kz);
    if (iz < 0) continue;
    for (int ky = 0; ky < g.window_height(); ++ky) {
      const int iy = g.in_row(row, ky);
      if (iy < 0) continue;
      for (int kx = 0; kx < g.kernel; ++kx) {
        const int ix = g.in_column(column, kx);
        if (ix < 0) continue;
        visit(((1L * iz * g.height + iy) * g.width + ix) * g.channels,
              ((1L * kz * g.window_height() + ky) * g.kernel + kx) * g.group_channels());
      }
    }
  }
}
}  // namespace detail

/// y = x * w + bias by plain loops; x is (batch, depth, height, width, channels).
template <class Scalar> void conv2d_forward(const Conv2dGeometry& g, const Conv2dCall<Scalar>& c) {
  const int out = g.group_filters(), in = g.group_channels();
  const long pitch = g.weight_pitch();
  for (long n = 0; n < c.batch; ++n)
    for (long pixel = 0; pixel < g.out_pixels(); ++pixel) {
      Scalar* y = c.y + n * g.out_count() + pixel * g.filters;
      for (int f = 0; f < g.filters; ++f) y[f] = c.bias ? c.bias[f] : Scalar(0);
      detail::each_tap(g, pixel, [&](long at, long tap) {
        const Scalar* x = c.x + n * g.in_count() + at;
        for (int group = 0; group < g.groups; ++group)
          for (int i = 0; i < in; ++i) {
            const Scalar value = x[group * in + i];
            const Scalar* w = c.weight + (tap + i) * pitch + group * out;
            Scalar* to = y + group * out;
            for (int f = 0; f < out; ++f) to[f] += value * w[f];
          }
      });
    }
}

/// dx, written whole, of dy and the weights, by plain loops.
template <class Scalar> void conv2d_backward_data(const Conv2dGeometry& g, const Conv2dCall<Scalar>& c) {
  const int out = g.group_filters(), in = g.group_channels();
  const long pitch = g.weight_pitch();
  for (long i = 0; i < c.batch * g.in_count(); ++i) c.dx[i] = 0;
  for (long n = 0; n < c.batch; ++n)
    for (long pixel = 0; pixel < g.out_pixels(); ++pixel) {
      const Scalar* dy = c.dy + n * g.out_count() + pixel * g.filters;
      detail::each_tap(g, pixel, [&](long at, long tap) {
        Scalar* dx = c.dx + n * g.in_count() + at;
        for (int group = 0; group < g.groups; ++group)
          for (int i = 0; i < in; ++i) {
            const Scalar* w = c.weight + (tap + i) * pitch + group * out;
            Scalar sum = 0;
            for (int f = 0; f < out; ++f) sum += dy[group * out + f] * w[f];
            dx[group * in + i] += sum;
          }
      });
    }
}

/// Adds the gradients of weights and bias, by plain loops.
template <class Scalar> void conv2d_backward_weights(const Conv2dGeometry& g, const Conv2dCall<Scalar>& c) {
  const int out = g.group_filters(), in = g.group_channels();
  const long pitch = g.weight_pitch();
  for (long n = 0; n < c.batch; ++n)
    for (long pixel = 0; pixel < g.out_pixels(); ++pixel) {
      const Scalar* dy = c.dy + n * g.out_count() + pixel * g.filters;
      if (c.dbias)
        for (int f = 0; f < g.filters; ++f) c.dbias[f] += dy[f];
      detail::each_tap(g, pixel, [&](long at, long tap) {
        const Scalar* x = c.x + n * g.in_count() + at;
        for (int group = 0; group < g.groups; ++group)
          for (int i = 0; i < in; ++i) {
            const Scalar value = x[group * in + i];
            Scalar* dw = c.dweight + (tap + i) * pitch + group * out;
            for (int f = 0; f < out; ++f) dw[f] += value * dy[group * out + f];
          }
      });
    }
}

}  // namespace reference

}  // namespace skein::inline SKEIN_ABI::ops
