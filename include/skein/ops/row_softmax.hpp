// SPDX-License-Identifier: Apache-2.0
// Face of softmax and log-softmax over the rows of a matrix, and their gradients: dispatches on the device tag. The fused loss of
// a classifier is cross_entropy in ops/softmax.hpp.
#pragma once
#include <type_traits>

#include "../device/device.hpp"
#include "cpu/row_softmax.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// y = exp(x - max) / sum, or its logarithm, over each row of n values; rows lie `pitch` apart. No value overflows.
template <class Device, bool Log, class Scalar> void row_softmax(long rows, long n, long pitch, const Scalar* x, Scalar* y) {
  static_assert(std::is_same_v<Device, Cpu>, "ops::row_softmax: this device's operations are not included");
  cpu::row_softmax<Log>(rows, n, pitch, x, y);
}

/// dx from y and dy: y (dy - sum(dy y)); with Log: dy - exp(y) sum(dy).
template <class Device, bool Log, class Scalar>
void row_softmax_backward(long rows, long n, long pitch, const Scalar* y, const Scalar* dy, Scalar* dx) {
  static_assert(std::is_same_v<Device, Cpu>, "ops::row_softmax_backward: this device's operations are not included");
  cpu::row_softmax_backward<Log>(rows, n, pitch, y, dy, dx);
}

}  // namespace skein::inline SKEIN_ABI::ops
