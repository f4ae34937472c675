// SPDX-License-Identifier: Apache-2.0
// The patches of an image that a convolution multiplies by its weights, as a matrix.
#pragma once
#include <algorithm>

#include "reference/conv2d.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// image: (depth, height, width, channels), dense; to: (out_pixels, weight_rows), dense, columns in the order of the weight's
/// rows (slice, row and column of the window, channel); zeros where the padding is. Of one group.
template <class Scalar> void write_patches(const Conv2dGeometry& g, const Scalar* image, Scalar* to) {
  std::fill_n(to, g.out_pixels() * g.weight_rows(), Scalar(0));
  for (long pixel = 0; pixel < g.out_pixels(); ++pixel, to += g.weight_rows())
    reference::detail::each_tap(g, pixel, [&](long at, long tap) { std::copy_n(image + at, g.channels, to + tap); });
}

}  // namespace skein::inline SKEIN_ABI::ops
