// SPDX-License-Identifier: Apache-2.0
// TargetKind: what a data set has beside its samples, and what a loss compares the outputs with.
#pragma once
#include "config.hpp"

namespace skein::inline SKEIN_ABI {

/// What belongs to a sample: nothing, class numbers, or a vector of numbers.
enum class TargetKind { none, label, vector };

}  // namespace skein::inline SKEIN_ABI
