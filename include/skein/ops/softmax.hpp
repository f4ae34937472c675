// SPDX-License-Identifier: Apache-2.0
// Face of the fused softmax, cross-entropy and gradient: dispatches on the device tag.
#pragma once
#include "../device/device.hpp"
#include "cpu/softmax.hpp"
#include "reference/softmax.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// Sums of loss, weight and hits over the rows, and the gradient where `pass.gradient` is not null. Subtracts each row's
/// maximum, so no logit overflows.
template <class Scalar> CrossEntropySums cross_entropy(Cpu, const CrossEntropyPass<Scalar>& pass) {
  return cpu::cross_entropy(pass);
}

}  // namespace skein::inline SKEIN_ABI::ops
