// SPDX-License-Identifier: Apache-2.0
// Two-dimensional convolution (a cross-correlation, as the field has it) as plain loops over NHWC images: the oracle of the
// tests, and what runs where no other kernel takes a geometry. Geometry and memory of a call are described here for all back
// ends.
#pragma once
#include "../../core/shape.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// A convolution of square windows over images (height, width, channels). Integers only: it may be a template argument.
struct Conv2dGeometry {
  int height = 1, width = 1, channels = 1;  ///< of the input
  int filters = 1;                          ///< output channels
  int kernel = 1, stride = 1, padding = 0, dilation = 1, groups = 1;

  constexpr int reach() const { return dilation * (kernel - 1) + 1; }
  constexpr bool fits() const { return height + 2 * padding >= reach() && width + 2 * padding >= reach(); }
  constexpr int out_height() const { return fits() ? (height + 2 * padding - reach()) / stride + 1 : 1; }
  constexpr int out_width() const { return fits() ? (width + 2 * padding - reach()) / stride + 1 : 1; }
  constexpr int group_channels() const { return channels / groups > 0 ? channels / groups : 1; }
  constexpr int group_filters() const { return filters / groups > 0 ? filters / groups : 1; }
  constexpr long in_count() const { return 1L * height * width * channels; }
  constexpr long out_count() const { return 1L * out_height() * out_width() * filters; }
  /// Rows of the weight: (kernel, kernel, channels / groups), each of row_pitch(filters) scalars.
  constexpr long weight_rows() const { return 1L * kernel * kernel * group_channels(); }
  constexpr long weight_pitch() const { return row_pitch(filters); }
  /// Multiplications and additions of one sample's forward pass, bias not counted.
  constexpr long flops() const { return 2L * out_height() * out_width() * filters * weight_rows(); }
  friend constexpr bool operator==(const Conv2dGeometry&, const Conv2dGeometry&) = default;
};

/// The memory of one call: `batch` dense images. Gradients are added to; dx is written, null where nobody wants it.
template <class Scalar> struct Conv2dCall {
  long batch = 0;
  const Scalar* x = nullptr;       ///< (batch, height, width, channels)
  const Scalar* weight = nullptr;  ///< (weight_rows, weight_pitch)
  const Scalar* bias = nullptr;    ///< (weight_pitch); null: none
  Scalar* y = nullptr;             ///< (batch, out_height, out_width, filters)
  const Scalar* dy = nullptr;
  Scalar* dx = nullptr;
  Scalar* dweight = nullptr;
  Scalar* dbias = nullptr;
  Scalar* packed_weights = nullptr;  ///< what pack_weights() made of the weights
  Scalar* workspace = nullptr;
};

namespace reference {

namespace detail {
/// Calls visit(offset of the input pixel, first weight row) for each tap of the window of output (row, column) inside the image.
template <class Visit> void each_tap(const Conv2dGeometry& g, int row, int column, Visit&& visit) {
  for (int ky = 0; ky < g.kernel; ++ky) {
    const int iy = row * g.stride + ky * g.dilation - g.padding;
    if (iy < 0 || iy >= g.height) continue;
    for (int kx = 0; kx < g.kernel; ++kx) {
      const int ix = column * g.stride + kx * g.dilation - g.padding;
      if (ix < 0 || ix >= g.width) continue;
      visit((1L * iy * g.width + ix) * g.channels, (1L * ky * g.kernel + kx) * g.group_channels());
    }
  }
}
}  // namespace detail

/// y = x * w + bias by plain loops; x is (batch, height, width, channels).
template <class Scalar> void conv2d_forward(const Conv2dGeometry& g, const Conv2dCall<Scalar>& c) {
  const int out = g.group_filters(), in = g.group_channels();
  const long pitch = g.weight_pitch();
  for (long n = 0; n < c.batch; ++n)
    for (int row = 0; row < g.out_height(); ++row)
      for (int column = 0; column < g.out_width(); ++column) {
        Scalar* y = c.y + n * g.out_count() + (1L * row * g.out_width() + column) * g.filters;
        for (int f = 0; f < g.filters; ++f) y[f] = c.bias ? c.bias[f] : Scalar(0);
        detail::each_tap(g, row, column, [&](long pixel, long tap) {
          const Scalar* x = c.x + n * g.in_count() + pixel;
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
    for (int row = 0; row < g.out_height(); ++row)
      for (int column = 0; column < g.out_width(); ++column) {
        const Scalar* dy = c.dy + n * g.out_count() + (1L * row * g.out_width() + column) * g.filters;
        detail::each_tap(g, row, column, [&](long pixel, long tap) {
          Scalar* dx = c.dx + n * g.in_count() + pixel;
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
    for (int row = 0; row < g.out_height(); ++row)
      for (int column = 0; column < g.out_width(); ++column) {
        const Scalar* dy = c.dy + n * g.out_count() + (1L * row * g.out_width() + column) * g.filters;
        if (c.dbias)
          for (int f = 0; f < g.filters; ++f) c.dbias[f] += dy[f];
        detail::each_tap(g, row, column, [&](long pixel, long tap) {
          const Scalar* x = c.x + n * g.in_count() + pixel;
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
