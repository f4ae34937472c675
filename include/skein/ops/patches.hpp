// SPDX-License-Identifier: Apache-2.0
// The patches of an image that a convolution multiplies by its weights, as a matrix.
#pragma once
#include <algorithm>

#include "reference/conv2d.hpp"

namespace skein::inline SKEIN_ABI::ops {

namespace detail {
/// One row of a window at x `first` of a line of an image, `to` moves on; line: null where it is padding. Values by loops: a call
/// costs more than some do.
template <class Scalar> void write_window_row(const Conv2dGeometry& g, const Scalar* line, int first, Scalar*& to) {
  const auto copy = [&to](const Scalar* from, long n) {
    for (long i = 0; i < n; ++i) to[i] = from[i];
    to += n;
  };
  const auto zeros = [&to](long n) {
    for (long i = 0; i < n; ++i) to[i] = Scalar(0);
    to += n;
  };
  if (!line) return zeros(1L * g.kernel * g.channels);
  if (g.dilation == 1) {  // pixels side by side
    const int lo = std::clamp(-first, 0, g.kernel), hi = std::clamp(g.width - first, lo, g.kernel);
    zeros(1L * lo * g.channels);
    copy(line + 1L * (first + lo) * g.channels, 1L * (hi - lo) * g.channels);
    return zeros(1L * (g.kernel - hi) * g.channels);
  }
  for (int kx = 0; kx < g.kernel; ++kx) {
    const int x = first + kx * g.dilation;
    if (x >= 0 && x < g.width) copy(line + 1L * x * g.channels, g.channels);
    else zeros(g.channels);
  }
}
}  // namespace detail

/// image: (depth, height, width, channels), dense; to: (out_pixels, weight_rows), dense, columns in the order of the weight's
/// rows (slice, row and column of the window, channel); zeros where the padding is. Of one group.
template <class Scalar> void write_patches(const Conv2dGeometry& g, const Scalar* image, Scalar* to) {
  for (int slice = 0; slice < g.out_depth(); ++slice)
    for (int row = 0; row < g.out_height(); ++row)
      for (int column = 0; column < g.out_width(); ++column)
        for (int kz = 0; kz < g.window_depth(); ++kz)
          for (int ky = 0; ky < g.window_height(); ++ky) {
            const int z = g.in_slice(slice, kz), y = g.in_row(row, ky);
            const Scalar* const line = z < 0 || y < 0 ? nullptr : image + (1L * z * g.height + y) * g.width * g.channels;
            detail::write_window_row(g, line, column * g.stride - g.padding, to);
          }
}

}  // namespace skein::inline SKEIN_ABI::ops
