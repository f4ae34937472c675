// SPDX-License-Identifier: Apache-2.0
// Face of convolution: Conv2d<Device, Scalar, Geometry> is what runs one geometry on one device. The geometry is a template
// argument, so that the back end can choose its kernel at compile time; kernels that need no specialisation take it as a value.
#pragma once
#include <concepts>
#include <string_view>

#include "../device/device.hpp"
#include "cpu/conv2d.hpp"
#include "kernel_needs.hpp"
#include "reference/conv2d.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// Bounds, for all scalar types, of the scalars that pack_weights() makes and of a worker's workspace.
constexpr long conv2d_packed_weights(const Conv2dGeometry& g) { return cpu::conv2d_packed_weights({g}); }
/// A bound, likewise, of the scalars of a worker's workspace.
constexpr long conv2d_workspace(const Conv2dGeometry& g) { return cpu::conv2d_workspace({g}); }

/// What a device's kernels of a geometry want.
template <class Device> constexpr KernelNeeds conv2d_needs(const Conv2dGeometry&) { return {}; }
template <> constexpr KernelNeeds conv2d_needs<Cpu>(const Conv2dGeometry& g) {
  return {conv2d_packed_weights(g), conv2d_workspace(g)};
}

/// What every back end offers for a geometry: each device specialises it.
template <class Device, class Scalar, Conv2dGeometry G> struct Conv2d {
  static_assert(
      !std::same_as<Device, Device>,
      "ops::Conv2d: this device's operations are not included; those of Cuda are cuDNN's: -DSKEIN_WITH_CUDNN=1 and -lcudnn");
};

template <class Scalar, Conv2dGeometry G> struct Conv2d<Cpu, Scalar, G> {
  using Kernel = cpu::Conv2d<Scalar, G>;
  /// Scalars that pack_weights() makes and scalars of a worker's workspace.
  static constexpr long packed_weights = conv2d_packed_weights(G), workspace = conv2d_workspace(G);
  /// Which kernel runs, for people.
  static constexpr std::string_view name = Kernel::name;
  /// Makes the packed copy of c.weight: call it after every change of the weights.
  static void pack_weights(const Conv2dCall<Scalar>& c) { Kernel::pack_weights(c); }
  /// Whatever must exist before the first call with this batch.
  static void prepare(long batch) { Kernel::prepare(batch); }
  static void forward(const Conv2dCall<Scalar>& c) { Kernel::forward(c); }
  /// Adds to dweight and dbias; writes dx where it is not null.
  static void backward(const Conv2dCall<Scalar>& c) { Kernel::backward(c); }
};

}  // namespace skein::inline SKEIN_ABI::ops
