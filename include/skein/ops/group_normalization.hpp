// SPDX-License-Identifier: Apache-2.0
// Face of group normalisation: GroupNormalizeKernels<Device> runs a call on its device.
#pragma once
#include "../device/device.hpp"
#include "cpu/group_normalization.hpp"
#include "kernel_needs.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// The memory of one call: `samples` times `pixels` rows of channels, the samples `pitch` apart. What a sample has behind its
/// values is written as zeros.
template <class Value, class Parameter = Value> struct GroupNormalizeCall {
  long samples = 0, pixels = 1, pitch = 0;
  double epsilon = 0;
  const Value* x = nullptr;
  Value* y = nullptr;
  const Value* dy = nullptr;
  Value* dx = nullptr;  ///< null: nobody wants it
  const Parameter* weight = nullptr;
  const Parameter* bias = nullptr;
  Parameter* dweight = nullptr;  ///< added to
  Parameter* dbias = nullptr;
  Parameter* saved_for_backward = nullptr;  ///< (samples, groups, 2): mean and 1 / deviation
  Parameter* workspace = nullptr;           ///< of the Cpu: cpu::group_normalize_workspace(channels)
};

/// What a device's kernels want for so many channels.
template <class Device> constexpr KernelNeeds group_normalize_needs(long) { return {}; }
template <> constexpr KernelNeeds group_normalize_needs<Cpu>(long channels) {
  return {.workspace = cpu::group_normalize_workspace(channels)};
}

/// A device's group normalisation: each specialises it.
template <class Device> struct GroupNormalizeKernels;

template <> struct GroupNormalizeKernels<Cpu> {
  template <int Channels, int Groups, class Scalar> static void prepare(const GroupNormalizeCall<Scalar>&) {}
  template <int Channels, int Groups, class Scalar> static void forward(const GroupNormalizeCall<Scalar>& c) {
    for (long s = 0; s < c.samples; ++s) {
      cpu::GroupNormalize<Channels, Groups, Scalar>::forward({c.x + s * c.pitch, c.pixels, Channels}, c.weight, c.bias, c.epsilon,
                                                             c.y + s * c.pitch, c.saved_for_backward + 2 * s * Groups,
                                                             c.workspace);
      for (long i = c.pixels * Channels; i < c.pitch; ++i) c.y[s * c.pitch + i] = 0;
    }
  }
  /// Adds to dweight and dbias; writes dx where it is not null.
  template <int Channels, int Groups, class Scalar> static void backward(const GroupNormalizeCall<Scalar>& c) {
    for (long s = 0; s < c.samples; ++s) {
      Scalar* const dx = c.dx ? c.dx + s * c.pitch : nullptr;
      cpu::GroupNormalize<Channels, Groups, Scalar>::backward({c.x + s * c.pitch, c.pixels, Channels}, c.dy + s * c.pitch,
                                                              c.weight, c.saved_for_backward + 2 * s * Groups, dx, c.dweight,
                                                              c.dbias, c.workspace);
      for (long i = c.pixels * Channels; dx && i < c.pitch; ++i) dx[i] = 0;
    }
  }
};

}  // namespace skein::inline SKEIN_ABI::ops
