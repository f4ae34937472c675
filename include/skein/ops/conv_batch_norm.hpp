// SPDX-License-Identifier: Apache-2.0
// Face of the convolution fused with batch normalisation: dispatches on the device tag, as ops::Conv2d does.
#pragma once
#include "../device/device.hpp"
#include "conv2d.hpp"
#include "cpu/conv_batch_norm.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// See ops::Conv2d and ops::BatchNormKernels. Devices that run it as one operation specialise it.
template <class Device, class Scalar, Conv2dGeometry G> struct ConvBatchNorm {
  static_assert(!std::same_as<Device, Device>, "ops::ConvBatchNorm: this device's operations are not included");
};

template <class Scalar, Conv2dGeometry G> struct ConvBatchNorm<Cpu, Scalar, G> {
  using Kernel = cpu::ConvBatchNorm<Scalar, G>;
  static constexpr std::string_view name = Kernel::name;
  /// Backward can add to dx.
  static constexpr bool adds_dx = Kernel::Conv::adds_dx;
  /// Scalars of `room` that gradient() wants.
  static constexpr long gradient_room = Kernel::Conv::direct ? G.out_count() : 0;

  template <class Context>
  static void forward(const Conv2dCall<Scalar>& c, const BatchNormCall<Scalar>& n, const Context& context) {
    Kernel::forward(c, n, context);
  }
  /// Adds to the gradients of all parameters; writes dx, or adds to it, where it is not null.
  template <class Context>
  static void backward(const Conv2dCall<Scalar>& c, const BatchNormCall<Scalar>& n, const Context& context) {
    Kernel::backward(c, n, context);
  }
  /// Forward's output in training once more, from the convolution's, which is kept.
  static void remake(const BatchNormCall<Scalar>& n) { Kernel::remake(n); }
  /// After backward, the gradient of sample i's convolution, (out_height, out_width, filters).
  static const Scalar* gradient(const BatchNormCall<Scalar>& n, long i, Scalar* room) { return Kernel::gradient(n, i, room); }
};

}  // namespace skein::inline SKEIN_ABI::ops
