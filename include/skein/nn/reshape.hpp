// SPDX-License-Identifier: Apache-2.0
// Reshape<N...>: the same values, row-major, under other extents. Nothing moves where both are stored alike.
#pragma once
#include "../ops/elementwise.hpp"
#include "layer.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Any input of as many values to Shape<Lengths...>, in memory order, as torch.reshape does.
template <int... Lengths> struct Reshape {
  static constexpr bool keeps_output_kind = true;
  static constexpr Extents output = Shape<Lengths...>::extents;

  static constexpr LayerInfo describe(Extents in) {
    return {.output = output,
            .aliases_input = sample_pitch(in) == sample_pitch(output),
            .fault = in.count() == output.count() ? Fault::none : Fault::reshape_count};
  }
  template <class In, class Frame> static void forward(Frame& f) {
    ops::copy_rows<typename Frame::Device>(f.y, sample_pitch(output), f.x, sample_pitch(In::extents), f.batch, In::count);
  }
  template <class In, class Frame> static void backward(Frame& f) {
    if (f.dx)
      ops::copy_rows<typename Frame::Device>(f.dx, sample_pitch(In::extents), f.dy, sample_pitch(output), f.batch, In::count);
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
