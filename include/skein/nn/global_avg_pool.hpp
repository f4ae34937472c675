// SPDX-License-Identifier: Apache-2.0
// GlobalAvgPool: the mean of each channel over all pixels; an image becomes flat.
#pragma once
#include "../core/half.hpp"
#include "../ops/pool2d.hpp"
#include "layer.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// (height, width, channels) becomes (channels).
struct GlobalAvgPool {
  static constexpr LayerInfo describe(Extents in) {
    LayerInfo i{.output = {1, {in.channels()}}};
    i.flops = in.count();
    if (!in.image()) i.fault = Fault::wants_image;
    return i;
  }
  template <class Device, class Activation> static constexpr bool computes_in = std::same_as<Device, Cuda>&& is_half<Activation>;
  template <class In, class Frame> static void forward(Frame& f) {
    constexpr long channels = In::extents.channels();
    ops::global_average_forward<typename Frame::Device>(In::count / channels, channels, f.batch, f.x, f.y, row_pitch(channels));
  }
  template <class In, class Frame> static void backward(Frame& f) {
    constexpr long channels = In::extents.channels();
    if (f.dx)
      ops::global_average_backward<typename Frame::Device>(In::count / channels, channels, f.batch, f.dy, row_pitch(channels),
                                                           f.dx);
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
