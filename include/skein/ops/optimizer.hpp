// SPDX-License-Identifier: Apache-2.0
// Face of the optimizers' passes: dispatches on the device tag. A pass may be run range by range, by several workers at
// once: each element is updated by itself, to the same bits.
#pragma once
#include "../device/device.hpp"
#include "cpu/optimizer.hpp"
#include "reference/optimizer.hpp"

namespace skein::inline SKEIN_ABI::ops {

template <class Scalar> void sgd(Cpu, const SgdPass<Scalar>& pass) { cpu::sgd(pass); }
template <class Scalar> void adam(Cpu, const AdamPass<Scalar>& pass) { cpu::adam(pass); }
template <class Scalar> void rms_prop(Cpu, const RmsPropPass<Scalar>& pass) { cpu::rms_prop(pass); }
/// The sum of the squares of the scaled, worker-summed gradients, in double.
template <class Scalar> double sum_of_squares(Cpu, const UpdatePass<Scalar>& pass) { return cpu::sum_of_squares(pass); }

}  // namespace skein::inline SKEIN_ABI::ops
