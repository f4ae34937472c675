// SPDX-License-Identifier: Apache-2.0
// AvgPool2d<K>: the mean of each K x K window of an image, per channel; padding counts as zeros (PyTorch's default).
#pragma once
#include "../core/half.hpp"
#include "../ops/pool2d.hpp"
#include "layer.hpp"
#include "options.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Options: Stride<K>, Padding<0> (at most half of K).
template <int K, class... Options> struct AvgPool2d {
  using options = detail::LayerOptions<List<Stride<K>, Padding<0>>, Options...>;
  static constexpr int kernel_size = K;
  static constexpr int stride = detail::option<Stride>(options{});
  static constexpr int padding = detail::option<Padding>(options{});
  static_assert(K > 0, "AvgPool2d<K>: K is at least 1");
  static_assert(2 * padding <= K, "AvgPool2d: Padding is at most half of the window");

  static constexpr ops::Pool2dGeometry geometry(Extents in) {
    const bool image = in.image();
    return {image ? in.height() : 1, image ? in.width() : 1, in.channels(), K, stride, padding};
  }
  static constexpr LayerInfo describe(Extents in) {
    const ops::Pool2dGeometry g = geometry(in);
    LayerInfo i{.output = {3, {g.out_height(), g.out_width(), g.channels}}};
    i.flops = g.out_count() * K * K;
    if (!in.image()) i.fault = Fault::wants_image;
    else if (!g.fits()) i.fault = Fault::window_too_large;
    return i;
  }
  template <class Device, class Activation> static constexpr bool computes_in = std::same_as<Device, Cuda>&& is_half<Activation>;
  template <class In, class Frame> static void forward(Frame& f) {
    ops::average_pool2d_forward<typename Frame::Device>(geometry(In::extents), f.batch, f.x, f.y);
  }
  template <class In, class Frame> static void backward(Frame& f) {
    if (f.dx) ops::average_pool2d_backward<typename Frame::Device>(geometry(In::extents), f.batch, f.dy, f.dx);
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
