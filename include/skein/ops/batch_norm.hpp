// SPDX-License-Identifier: Apache-2.0
// Face of batch normalisation: BatchNormKernels<Device> runs a call on its device. Context is the pass's: a device asks it to add
// up statistics (reduce_statistics: over workers, and over ranks where a policy says so), with memory of that device.
#pragma once
#include <cstddef>

#include "../device/device.hpp"
#include "batch_norm_types.hpp"
#include "cpu/batch_norm.hpp"
#include "kernel_needs.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// What a device's kernels want for rows of so many columns.
template <class Device> constexpr KernelNeeds batch_norm_needs(long) { return {}; }
template <> constexpr KernelNeeds batch_norm_needs<Cpu>(long columns) {
  return {.workspace = cpu::batch_norm_workspace(columns)};
}

/// A device's batch normalisation: each specialises it.
template <class Device> struct BatchNormKernels;

template <> struct BatchNormKernels<Cpu> {
  /// Whatever must exist before the first call on so many samples.
  template <int Channels, long Columns, class Value, class Parameter>
  static void prepare(const BatchNormCall<Value, Parameter>&) {}
  template <int Channels, long Columns, class Scalar, class Context>
  static void forward(const BatchNormCall<Scalar>& c, const Context& context) {
    cpu::BatchNorm<Channels, Columns, Scalar>::forward(c, context);
  }
  /// Adds to dweight and dbias; writes dx where it is not null.
  template <int Channels, long Columns, class Scalar, class Context>
  static void backward(const BatchNormCall<Scalar>& c, const Context& context) {
    cpu::BatchNorm<Channels, Columns, Scalar>::backward(c, context);
  }
  /// Forward's y in training once more, from x, where the call has scale and shift.
  template <int Channels, long Columns, class Scalar> static void remake(const BatchNormCall<Scalar>& c) {
    cpu::BatchNorm<Channels, Columns, Scalar>::remake(c);
  }
};

}  // namespace skein::inline SKEIN_ABI::ops
