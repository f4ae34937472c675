// SPDX-License-Identifier: Apache-2.0
// The factor of a step's gradients and its sums, on the GPU: one small kernel each.
#pragma once
#include "../../device/cuda/launch.hpp"
#include "../step_scale.hpp"

namespace skein::inline SKEIN_ABI::ops {

template <> struct StepKernels<Cuda> {
  template <class Function> static void run(long n, Function f) { skein::cuda::for_each(n, f); }
};

}  // namespace skein::inline SKEIN_ABI::ops
