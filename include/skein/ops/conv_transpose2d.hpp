// SPDX-License-Identifier: Apache-2.0
// Face of transposed convolution: the gradient of a convolution's input, run forward. G is the geometry of that convolution: its
// input is our output, its output our input. No kernel is written for it: forward is the convolution's gradient of the input,
// backward its forward pass and its gradient of the weight.
#pragma once
#include <algorithm>
#include <concepts>
#include <string_view>

#include "conv2d.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// What a device's kernels of a geometry want.
template <class Device> constexpr KernelNeeds conv_transpose2d_needs(const Conv2dGeometry& g) { return conv2d_needs<Device>(g); }
template <> constexpr KernelNeeds conv_transpose2d_needs<Cpu>(const Conv2dGeometry& g) {
  return {cpu::onednn_packed_weights(g), cpu::onednn_workspace(g)};
}

/// The calls of the convolution that a transposed one is made of. `c` is of the transposed one: x is (batch, G's output).
template <class Call> struct TransposedCalls {
  static Call with_weights(const Call& c) {
    Call d = c;
    d.bias = nullptr;
    d.x = d.dy = nullptr;
    d.y = d.dx = nullptr;
    d.dweight = d.dbias = nullptr;
    return d;
  }
  static Call output(const Call& c) {
    Call d = with_weights(c);
    d.dy = c.x;
    d.dx = c.y;
    return d;
  }
  static Call input_gradient(const Call& c) {
    Call d = with_weights(c);
    d.x = c.dy;
    d.y = c.dx;
    return d;
  }
  static Call weight_gradient(const Call& c) {
    Call d = with_weights(c);
    d.x = c.dy;
    d.dy = c.x;
    d.dweight = c.dweight;
    return d;
  }
};

/// What every back end offers for a geometry: each device specialises it.
template <class Device, class Scalar, Conv2dGeometry G> struct ConvTranspose2d {
  static_assert(!std::same_as<Device, Device>,
                "ops::ConvTranspose2d: this device's operations are not included; those of Cuda are cuDNN's: "
                "-DSKEIN_WITH_CUDNN=1 and -lcudnn");
};

template <class Scalar, Conv2dGeometry G> struct ConvTranspose2d<Cpu, Scalar, G> {
  using Calls = TransposedCalls<Conv2dCall<Scalar>>;
  static constexpr std::string_view name = cpu::onednn_takes<Scalar> ? "oneDNN" : "reference";

  static void pack_weights(const Conv2dCall<Scalar>& c) {
    if constexpr (cpu::onednn_takes<Scalar>) cpu::onednn_conv2d<G>().pack_weights(c);
  }
  static void prepare(long batch) {
    if constexpr (cpu::onednn_takes<Scalar>) cpu::onednn_conv2d<G>().prepare(batch);
  }
  static void forward(const Conv2dCall<Scalar>& c) {
    run_backward(Calls::output(c));
    for (long pixel = 0; c.bias && pixel < c.batch * G.in_pixels(); ++pixel)
      for (int f = 0; f < G.channels; ++f) c.y[pixel * G.channels + f] += c.bias[f];
  }
  /// Adds to dweight and dbias; writes dx where it is not null.
  static void backward(const Conv2dCall<Scalar>& c) {
    if (c.dbias) add_bias_gradient(c);
    if (c.dx) run_forward(Calls::input_gradient(c));
    run_backward(Calls::weight_gradient(c));
  }

 private:
  static void run_forward(const Conv2dCall<Scalar>& c) {
    if constexpr (cpu::onednn_takes<Scalar>) cpu::onednn_conv2d<G>().forward(c);
    else cpu::ReferenceConv2d<Scalar>::forward(G, c);
  }
  static void run_backward(const Conv2dCall<Scalar>& c) {
    if constexpr (cpu::onednn_takes<Scalar>) cpu::onednn_conv2d<G>().backward(c);
    else cpu::ReferenceConv2d<Scalar>::backward(G, c);
  }
  /// A row of pixels at a time, so that long sums keep their digits.
  static void add_bias_gradient(const Conv2dCall<Scalar>& c) {
    Scalar sums[static_cast<std::size_t>(G.channels)];
    for (long row = 0; row < c.batch * G.height; ++row) {
      const Scalar* const from = c.dy + row * G.width * G.channels;
      std::fill_n(sums, G.channels, Scalar(0));
      for (long pixel = 0; pixel < G.width; ++pixel)
        for (int f = 0; f < G.channels; ++f) sums[f] += from[pixel * G.channels + f];
      for (int f = 0; f < G.channels; ++f) c.dbias[f] += sums[f];
    }
  }
};

}  // namespace skein::inline SKEIN_ABI::ops
