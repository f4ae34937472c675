// SPDX-License-Identifier: Apache-2.0
// Face of the convolution fused with ReLU and max-pooling: dispatches on the device tag, as ops::Conv2d does.
#pragma once
#include "../device/device.hpp"
#include "cpu/conv_relu_pool.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// See ops::Conv2d. `saved_for_backward` and `winners` go from forward to backward; c.y is read in backward where there is ReLU.
/// Devices that run it as one kernel specialise it.
template <class Device, class Scalar, ConvReluPoolGeometry G> struct ConvReluPool {
  static_assert(!std::same_as<Device, Device>, "ops::ConvReluPool: this device's operations are not included");
};

template <class Scalar, ConvReluPoolGeometry G> struct ConvReluPool<Cpu, Scalar, G> {
  using Kernel = cpu::ConvReluPool<Scalar, G>;
  static constexpr std::string_view name = Kernel::name;
  static void pack_weights(const Conv2dCall<Scalar>& c) { Kernel::pack_weights(c); }
  static void prepare(long batch) { Kernel::prepare(batch); }
  static void forward(const Conv2dCall<Scalar>& c, Scalar* saved_for_backward, ArgMax* winners) {
    Kernel::forward(c, saved_for_backward, winners);
  }
  static void backward(const Conv2dCall<Scalar>& c, Scalar* saved_for_backward, const ArgMax* winners) {
    Kernel::backward(c, saved_for_backward, winners);
  }
  /// After backward, the gradient of sample n's convolution, (out_height, out_width, filters): what backward has left in
  /// saved_for_backward (kept_gradient), or in `room` for as many scalars.
  static constexpr bool kept_gradient = !Kernel::direct;
  static const Scalar* gradient(const Scalar* y, const Scalar* dy, const Scalar* saved_for_backward, const ArgMax* winners,
                                long n, Scalar* room) {
    return Kernel::gradient(y, dy, saved_for_backward, winners, n, room);
  }
};

}  // namespace skein::inline SKEIN_ABI::ops
