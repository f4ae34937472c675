// SPDX-License-Identifier: Apache-2.0
// Face of the optimizers' passes: dispatches on the device tag. A pass may be run range by range, by several workers at
// once: each element is updated by itself, to the same bits.
#pragma once
#include <concepts>

#include "../device/device.hpp"
#include "cpu/optimizer.hpp"
#include "reference/optimizer.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// The passes of one device; a device without its header is a compile error that names this.
template <class Device> struct OptimizerKernels;

template <> struct OptimizerKernels<Cpu> {
  /// Do passes read UpdateArguments::ranges, so that one serves all parameter groups?
  static constexpr bool takes_ranges = false;
  template <class Scalar> static void update(const SgdArguments<Scalar>& arguments) { cpu::sgd(arguments); }
  template <class Scalar> static void update(const AdamArguments<Scalar>& arguments) { cpu::adam(arguments); }
  template <class Scalar> static void update(const RmsPropArguments<Scalar>& arguments) { cpu::rms_prop(arguments); }
  template <class Scalar> static void update(const AdagradArguments<Scalar>& arguments) { cpu::adagrad(arguments); }
  template <class Scalar> static void update(const LionArguments<Scalar>& arguments) { cpu::lion(arguments); }
  template <class Call> static void update(const Call& arguments) { reference::update(arguments); }
  template <class Scalar> static void sum_of_squares(const UpdateArguments<Scalar>& arguments, double* into) {
    *into = cpu::sum_of_squares(arguments);
  }
  template <class Scalar> static void prepare_sum_of_squares(long) {}
};

/// A step of Sgd over a range of elements.
template <class Device, class Scalar> void sgd(const SgdArguments<Scalar>& arguments) {
  OptimizerKernels<Device>::update(arguments);
}
/// A step of Adam, AdamW or their kin over a range of elements.
template <class Device, class Scalar> void adam(const AdamArguments<Scalar>& arguments) {
  OptimizerKernels<Device>::update(arguments);
}
/// A step of RmsProp over a range of elements.
template <class Device, class Scalar> void rms_prop(const RmsPropArguments<Scalar>& arguments) {
  OptimizerKernels<Device>::update(arguments);
}
/// An optimizer of one's own: a pass that derives from UpdateArguments<Scalar> and has what SgdArguments has: arrays, array(k),
/// element(g, value, state) and rescale(lr_factor, decay_factor). Written once for every device.
template <class Device, class Call> void update(const Call& arguments) { OptimizerKernels<Device>::update(arguments); }
/// *into = the sum of the squares of the scaled, worker-summed gradients, in double: not finite where one of them is not. On a
/// device `into` is the device's, nothing waits, frozen ranges have no part, and only gradient_scale scales.
template <class Device, class Scalar> void sum_of_squares(const UpdateArguments<Scalar>& arguments, double* into) {
  OptimizerKernels<Device>::sum_of_squares(arguments, into);
}
/// Makes the scratch memory that a device wants for the sum of the squares of so many gradients.
template <class Device, class Scalar> void prepare_sum_of_squares(long count) {
  OptimizerKernels<Device>::template prepare_sum_of_squares<Scalar>(count);
}
template <std::same_as<Cpu> Device, class Scalar> double sum_of_squares(const UpdateArguments<Scalar>& arguments) {
  return cpu::sum_of_squares(arguments);
}

}  // namespace skein::inline SKEIN_ABI::ops
