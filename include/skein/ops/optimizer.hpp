// SPDX-License-Identifier: Apache-2.0
// Face of the optimizers' passes: dispatches on the device tag. A pass may be run range by range, by several workers at
// once: each element is updated by itself, to the same bits.
#pragma once
#include "../device/device.hpp"
#include "cpu/optimizer.hpp"
#include "reference/optimizer.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// The passes of one device; a device without its header is a compile error that names this.
template <class Device> struct OptimizerKernels;

template <> struct OptimizerKernels<Cpu> {
  /// Do passes read UpdatePass::ranges, so that one serves all parameter groups?
  static constexpr bool takes_ranges = false;
  template <class Scalar> static void update(const SgdPass<Scalar>& pass) { cpu::sgd(pass); }
  template <class Scalar> static void update(const AdamPass<Scalar>& pass) { cpu::adam(pass); }
  template <class Scalar> static void update(const RmsPropPass<Scalar>& pass) { cpu::rms_prop(pass); }
  template <class Pass> static void update(const Pass& pass) { reference::update(pass); }
  template <class Scalar> static void sum_of_squares(const UpdatePass<Scalar>& pass, double* into) {
    *into = cpu::sum_of_squares(pass);
  }
};

template <class Device, class Scalar> void sgd(Device, const SgdPass<Scalar>& pass) { OptimizerKernels<Device>::update(pass); }
template <class Device, class Scalar> void adam(Device, const AdamPass<Scalar>& pass) { OptimizerKernels<Device>::update(pass); }
template <class Device, class Scalar> void rms_prop(Device, const RmsPropPass<Scalar>& pass) {
  OptimizerKernels<Device>::update(pass);
}
/// An optimizer of one's own: a pass that derives from UpdatePass<Scalar> and has what SgdPass has: arrays, array(k), element(g,
/// value, state) and rescale(lr_factor, decay_factor). Written once for every device.
template <class Device, class Pass> void update(Device, const Pass& pass) { OptimizerKernels<Device>::update(pass); }
/// *into = the sum of the squares of the scaled, worker-summed gradients, in double: not finite where one of them is not. On a
/// device `into` is the device's, nothing waits, frozen ranges have no part, and only gradient_scale scales.
template <class Device, class Scalar> void sum_of_squares(Device, const UpdatePass<Scalar>& pass, double* into) {
  OptimizerKernels<Device>::sum_of_squares(pass, into);
}
template <class Scalar> double sum_of_squares(Cpu, const UpdatePass<Scalar>& pass) { return cpu::sum_of_squares(pass); }

}  // namespace skein::inline SKEIN_ABI::ops
