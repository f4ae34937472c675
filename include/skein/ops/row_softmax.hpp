// SPDX-License-Identifier: Apache-2.0
// Face of softmax and log-softmax over the rows of a matrix, and their gradients: dispatches on the device tag. The fused loss of
// a classifier is cross_entropy in ops/softmax.hpp.
#pragma once
#include "../device/device.hpp"
#include "cpu/row_softmax.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// A device's softmax over rows: each specialises it.
template <class Device> struct RowSoftmaxKernels;

template <> struct RowSoftmaxKernels<Cpu> {
  static void prepare() {}
  template <bool Log, class Scalar> static void forward(long rows, long n, long pitch, const Scalar* x, Scalar* y) {
    cpu::row_softmax<Log>(rows, n, pitch, x, y);
  }
  template <bool Log, class Scalar>
  static void backward(long rows, long n, long pitch, const Scalar* y, const Scalar* dy, Scalar* dx) {
    cpu::row_softmax_backward<Log>(rows, n, pitch, y, dy, dx);
  }
};

/// Makes what a device's library wants before the first call of the calling thread.
template <class Device> void row_softmax_prepare() { RowSoftmaxKernels<Device>::prepare(); }

/// y = exp(x - max) / sum, or its logarithm, over each row of n values; rows lie `pitch` apart. No value overflows.
template <class Device, bool Log, class Scalar> void row_softmax(long rows, long n, long pitch, const Scalar* x, Scalar* y) {
  RowSoftmaxKernels<Device>::template forward<Log>(rows, n, pitch, x, y);
}

/// dx from y and dy: y (dy - sum(dy y)); with Log: dy - exp(y) sum(dy).
template <class Device, bool Log, class Scalar>
void row_softmax_backward(long rows, long n, long pitch, const Scalar* y, const Scalar* dy, Scalar* dx) {
  RowSoftmaxKernels<Device>::template backward<Log>(rows, n, pitch, y, dy, dx);
}

}  // namespace skein::inline SKEIN_ABI::ops
