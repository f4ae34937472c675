// SPDX-License-Identifier: Apache-2.0
// The numbers of a training's arrays: what a train step has of them in this process, and what files have of all.
#pragma once
#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::parallel::training_arrays {

/// `optimizer` is the first of the optimizer's arrays, which are the last.
inline constexpr int parameters = 0, buffers = 1, optimizer = 2;

}  // namespace skein::inline SKEIN_ABI::parallel::training_arrays
