// SPDX-License-Identifier: Apache-2.0
// Face of the fused softmax, cross-entropy and gradient: dispatches on the device tag.
#pragma once
#include "../device/device.hpp"
#include "cpu/softmax.hpp"
#include "reference/softmax.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// The pass on one device; a device without its header is a compile error that names this.
template <class Device> struct CrossEntropyKernels;

template <> struct CrossEntropyKernels<Cpu> {
  template <class Scalar> static CrossEntropySums run(const CrossEntropyArguments<Scalar>& arguments) {
    return cpu::cross_entropy(arguments);
  }
};

/// Sums of loss, weight and correct answers over the rows, and the gradient where `arguments.gradient` is not null. Subtracts
/// each row's maximum, so no logit overflows. A device adds the sums to pass.sums, and the call returns nothing without waiting.
template <class Device, class Scalar> CrossEntropySums cross_entropy(const CrossEntropyArguments<Scalar>& arguments) {
  return CrossEntropyKernels<Device>::run(arguments);
}

}  // namespace skein::inline SKEIN_ABI::ops
