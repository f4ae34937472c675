// SPDX-License-Identifier: Apache-2.0
// Whether an operand of a matrix product is given transposed.
#pragma once
#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// `yes`: the array holds the transposed matrix.
enum class Transpose { no, yes };

}  // namespace skein::inline SKEIN_ABI::ops
