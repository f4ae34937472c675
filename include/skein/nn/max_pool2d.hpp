// SPDX-License-Identifier: Apache-2.0
// MaxPool2d<K>: the maximum of each K x K window of an image, per channel. Backward needs one byte an output.
#pragma once
#include "../core/half.hpp"
#include "../ops/pool2d.hpp"
#include "layer.hpp"
#include "options.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Options: Stride<K>, Padding<0> (at most half of K). Equal values: the first one in row-major order gets the gradient.
template <int K, class... Options> struct MaxPool2d {
  using options = detail::LayerOptions<List<Stride<K>, Padding<0>>, Options...>;
  static constexpr int kernel_size = K;
  static constexpr int stride = detail::option<Stride>(options{});
  static constexpr int padding = detail::option<Padding>(options{});
  static_assert(K > 0 && K <= ops::largest_max_pool, "MaxPool2d<K>: K is from 1 to 15");
  static_assert(2 * padding <= K, "MaxPool2d: Padding is at most half of the window");

  static constexpr ops::Pool2dGeometry geometry(Extents in) {
    const bool image = in.image();
    return {image ? in.height() : 1, image ? in.width() : 1, in.channels(), K, stride, padding};
  }
  static constexpr LayerInfo describe(Extents in) {
    const ops::Pool2dGeometry g = geometry(in);
    LayerInfo i{.output = {3, {g.out_height(), g.out_width(), g.channels}}};
    i.saved_bytes = g.out_count() * static_cast<long>(sizeof(ops::ArgMax));
    i.flops = g.out_count() * K * K;
    if (!in.image()) i.fault = Fault::wants_image;
    else if (!g.fits()) i.fault = Fault::window_too_large;
    return i;
  }
  template <class Device, class Activation> static constexpr bool computes_in = std::same_as<Device, Cuda>&& is_half<Activation>;
  template <class In, class Frame> static void forward(Frame& f) {
    ops::max_pool2d_forward<typename Frame::Device>(geometry(In::extents), f.batch, f.x, f.y,
                                                    reinterpret_cast<ops::ArgMax*>(f.saved_bytes));
  }
  template <class In, class Frame> static void backward(Frame& f) {
    if (!f.dx) return;
    ops::max_pool2d_backward<typename Frame::Device>(geometry(In::extents), f.batch, f.dy,
                                                     reinterpret_cast<const ops::ArgMax*>(f.saved_bytes), f.dx);
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
