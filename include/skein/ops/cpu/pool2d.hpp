// SPDX-License-Identifier: Apache-2.0
// Max-pooling on the processor.
#pragma once
#include "../reference/pool2d.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {
using reference::max_pool2d_backward;
using reference::max_pool2d_forward;
}  // namespace skein::inline SKEIN_ABI::ops::cpu
