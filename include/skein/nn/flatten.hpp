// SPDX-License-Identifier: Apache-2.0
// Flatten: an image (or any shape) as one row. Nothing moves where the row is stored densely, as an image is; where rows are
// padded (row_pitch of the count), the samples are copied apart.
#pragma once
#include "../ops/elementwise.hpp"
#include "layer.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Shape<h, w, c> to Shape<h * w * c>, in memory order: (h, w, c).
struct Flatten {
  static constexpr bool keeps_output_kind = true;
  static constexpr LayerInfo describe(Extents in) {
    const long n = in.count();
    return {.output = {1, {static_cast<int>(n)}}, .aliases_input = sample_pitch(in) == row_pitch(n)};
  }
  template <class In, class Frame> static void forward(Frame& f) {
    ops::copy_rows<typename Frame::Device>(f.y, row_pitch(In::count), f.x, sample_pitch(In::extents), f.batch, In::count);
  }
  template <class In, class Frame> static void backward(Frame& f) {
    if (f.dx)
      ops::copy_rows<typename Frame::Device>(f.dx, sample_pitch(In::extents), f.dy, row_pitch(In::count), f.batch, In::count);
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
