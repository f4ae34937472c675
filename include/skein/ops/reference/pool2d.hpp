// SPDX-License-Identifier: Apache-2.0
// Pooling of NHWC images as plain loops: the oracle of the tests. Ties of a maximum go to the first, in row-major order; a NaN
// wins; padding counts for nothing in a maximum and as zeros in an average (PyTorch's defaults).
//
//     g the geometry; x images (N, height, width, channels), y their outputs, dx, dy the gradients; N samples: batch; n a sample,
//     c a channel, p a pixel, kx, ky a place of the window, ix, iy a pixel of the input
#pragma once
#include <algorithm>
#include <cstdint>

#include "../../core/shape.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// Square windows over images (height, width, channels). Integers only: it may be a template argument.
struct Pool2dGeometry {
  int height = 1, width = 1, channels = 1;
  int kernel = 1, stride = 1, padding = 0;

  constexpr bool fits() const { return height + 2 * padding >= kernel && width + 2 * padding >= kernel; }
  constexpr int out_height() const { return fits() ? (height + 2 * padding - kernel) / stride + 1 : 1; }
  constexpr int out_width() const { return fits() ? (width + 2 * padding - kernel) / stride + 1 : 1; }
  constexpr long in_count() const { return 1L * height * width * channels; }
  constexpr long out_count() const { return 1L * out_height() * out_width() * channels; }
  friend constexpr bool operator==(const Pool2dGeometry&, const Pool2dGeometry&) = default;
};

/// The place of a maximum in its window, row-major: kernel x kernel must be less than this type holds.
using ArgMax = std::uint8_t;
inline constexpr int largest_max_pool = 15;

namespace reference {

namespace detail {
/// Calls visit(offset of the input pixel, place in the window) for each pixel of a window that lies in the image.
template <class Visit> void each_pixel(const Pool2dGeometry& g, int row, int column, Visit&& visit) {
  for (int ky = 0; ky < g.kernel; ++ky) {
    const int iy = row * g.stride + ky - g.padding;
    if (iy < 0 || iy >= g.height) continue;
    for (int kx = 0; kx < g.kernel; ++kx) {
      const int ix = column * g.stride + kx - g.padding;
      if (ix < 0 || ix >= g.width) continue;
      visit((1L * iy * g.width + ix) * g.channels, ky * g.kernel + kx);
    }
  }
}
/// Calls visit(sample offset in x, pixel offset in y, row, column) for each output pixel.
template <class Visit> void each_output(const Pool2dGeometry& g, long batch, Visit&& visit) {
  for (long n = 0; n < batch; ++n)
    for (int row = 0; row < g.out_height(); ++row)
      for (int column = 0; column < g.out_width(); ++column)
        visit(n * g.in_count(), n * g.out_count() + (1L * row * g.out_width() + column) * g.channels, row, column);
}
}  // namespace detail

/// winners: (batch, out_count).
template <class Scalar>
void max_pool2d_forward(const Pool2dGeometry& g, long batch, const Scalar* x, Scalar* y, ArgMax* winners) {
  detail::each_output(g, batch, [&](long in, long out, int row, int column) {
    bool first = true;
    detail::each_pixel(g, row, column, [&](long pixel, int place) {
      const Scalar* from = x + in + pixel;
      for (int c = 0; c < g.channels; ++c)
        if (first || from[c] > y[out + c] || from[c] != from[c]) {
          y[out + c] = from[c];
          winners[out + c] = static_cast<ArgMax>(place);
        }
      first = false;
    });
  });
}

/// rectified: null, or the outputs behind a ReLU: those that are not positive hand nothing back.
template <class Scalar> void max_pool2d_backward(const Pool2dGeometry& g, long batch, const Scalar* dy, const ArgMax* winners,
                                                 Scalar* dx, const Scalar* rectified = nullptr) {
  for (long i = 0; i < batch * g.in_count(); ++i) dx[i] = 0;
  detail::each_output(g, batch, [&](long in, long out, int row, int column) {
    detail::each_pixel(g, row, column, [&](long pixel, int place) {
      Scalar* to = dx + in + pixel;
      for (int c = 0; c < g.channels; ++c)
        if (winners[out + c] == place && (!rectified || rectified[out + c] > 0)) to[c] += dy[out + c];
    });
  });
}

/// The mean of each window, by plain loops; zeros of the padding count.
template <class Scalar> void average_pool2d_forward(const Pool2dGeometry& g, long batch, const Scalar* x, Scalar* y) {
  const Scalar scale = Scalar(1) / static_cast<Scalar>(g.kernel * g.kernel);
  detail::each_output(g, batch, [&](long in, long out, int row, int column) {
    for (int c = 0; c < g.channels; ++c) y[out + c] = 0;
    detail::each_pixel(g, row, column, [&](long pixel, int) {
      for (int c = 0; c < g.channels; ++c) y[out + c] += x[in + pixel + c];
    });
    for (int c = 0; c < g.channels; ++c) y[out + c] *= scale;
  });
}

/// The gradient of average_pool2d_forward: dx is written whole.
template <class Scalar> void average_pool2d_backward(const Pool2dGeometry& g, long batch, const Scalar* dy, Scalar* dx) {
  const Scalar scale = Scalar(1) / static_cast<Scalar>(g.kernel * g.kernel);
  for (long i = 0; i < batch * g.in_count(); ++i) dx[i] = 0;
  detail::each_output(g, batch, [&](long in, long out, int row, int column) {
    detail::each_pixel(g, row, column, [&](long pixel, int) {
      for (int c = 0; c < g.channels; ++c) dx[in + pixel + c] += dy[out + c] * scale;
    });
  });
}

/// Pixels whose sum is added as one, so that the sums of large images keep their digits.
inline constexpr long average_block = 64;

/// y: (batch, y_pitch), gaps zero. The mean over all pixels of each channel.
template <class Scalar>
void global_average_forward(long pixels, long channels, long batch, const Scalar* x, Scalar* y, long y_pitch) {
  constexpr long tile = 64;  // channels
  const Scalar scale = Scalar(1) / static_cast<Scalar>(pixels);
  for (long n = 0; n < batch; ++n) {
    Scalar* to = y + n * y_pitch;
    for (long c = 0; c < y_pitch; ++c) to[c] = 0;
    for (long first = 0; first < pixels; first += average_block)
      for (long begin = 0; begin < channels; begin += tile) {
        const long width = std::min(tile, channels - begin), end = std::min(pixels, first + average_block);
        Scalar sums[tile] = {};
        for (long p = first; p < end; ++p)
          for (long c = 0; c < width; ++c) sums[c] += x[(n * pixels + p) * channels + begin + c];
        for (long c = 0; c < width; ++c) to[begin + c] += sums[c];
      }
    for (long c = 0; c < channels; ++c) to[c] *= scale;
  }
}

/// The gradient of the mean over all pixels: dx is written whole.
template <class Scalar>
void global_average_backward(long pixels, long channels, long batch, const Scalar* dy, long dy_pitch, Scalar* dx) {
  const Scalar scale = Scalar(1) / static_cast<Scalar>(pixels);
  for (long n = 0; n < batch; ++n)
    for (long p = 0; p < pixels; ++p)
      for (long c = 0; c < channels; ++c) dx[(n * pixels + p) * channels + c] = dy[n * dy_pitch + c] * scale;
}

}  // namespace reference

}  // namespace skein::inline SKEIN_ABI::ops
