// SPDX-License-Identifier: Apache-2.0
// f(i) for each index on the GPU: a thread an index.
#pragma once
#include "../../device/cuda/launch.hpp"
#include "../for_each.hpp"

namespace skein::inline SKEIN_ABI::ops {

template <> struct IndexKernels<Cuda> {
  template <class Function> static void run(long n, const Function& f) { skein::cuda::for_each(n, f); }
};

}  // namespace skein::inline SKEIN_ABI::ops
