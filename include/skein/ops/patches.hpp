// SPDX-License-Identifier: Apache-2.0
// The patches of an image that a convolution multiplies by its weights, as a matrix.
#pragma once
#include <algorithm>

#include "reference/conv2d.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// image: (height, width, channels), dense; to: (out_height * out_width, weight_rows), dense, columns in the order of the
/// weight's rows (kernel row, kernel column, channel); zeros where the padding is. Of one group.
template <class Scalar> void write_patches(const Conv2dGeometry& g, const Scalar* image, Scalar* to) {
  for (int row = 0; row < g.out_height(); ++row)
    for (int column = 0; column < g.out_width(); ++column)
      for (int ky = 0; ky < g.kernel; ++ky)
        for (int kx = 0; kx < g.kernel; ++kx, to += g.channels) {
          const int y = row * g.stride + ky * g.dilation - g.padding, x = column * g.stride + kx * g.dilation - g.padding;
          const bool inside = y >= 0 && y < g.height && x >= 0 && x < g.width;
          if (inside) std::copy_n(image + (1L * y * g.width + x) * g.channels, g.channels, to);
          else std::fill_n(to, g.channels, Scalar(0));
        }
}

}  // namespace skein::inline SKEIN_ABI::ops
