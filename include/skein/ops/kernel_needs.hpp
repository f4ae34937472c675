// SPDX-License-Identifier: Apache-2.0
// What a device's kernels want beside the arrays that they are called with. An operation says it for each device, by a function
// template beside its interface: dense_needs<Device>(in, out). A device that says nothing wants nothing: its library reads the
// parameters as they are, and has a workspace of its own.
#pragma once
#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// The memory and the help that the kernels of one operation want. Scalars are of the parameters' type.
struct KernelNeeds {
  long packed_weights = 0;        ///< scalars of copies of the parameters in the kernels' order, made after each change
  long workspace = 0;             ///< scalars a worker, undefined between calls
  bool splits_gradients = false;  ///< the workers can divide one gradient of the parameters among them
};

}  // namespace skein::inline SKEIN_ABI::ops
