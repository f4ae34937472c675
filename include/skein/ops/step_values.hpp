// SPDX-License-Identifier: Apache-2.0
// The few numbers of a step that kernels read from device memory, so that a captured step can be replayed with others. On the Cpu
// they are arguments, and the pointers to them are null.
#pragma once
#include <cstdint>

#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// What changes from step to step. The executor writes it before the step; Context::values and LossCall::values point to it.
struct StepValues {
  std::uint64_t key = 0;           ///< of this step's random numbers
  std::uint64_t global_first = 0;  ///< first sample of this rank's slice, in the global batch
  double loss_scale = 1;           ///< factor of the gradient: what keeps small ones in reach of a half-precision type
};

}  // namespace skein::inline SKEIN_ABI::ops
