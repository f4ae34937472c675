// SPDX-License-Identifier: Apache-2.0
// The bodies of normalize.hpp.
#pragma once
#include <cmath>

#include "../core/text.hpp"
#include "normalize.hpp"

namespace skein::inline SKEIN_ABI::data {

SKEIN_INLINE void check_normalization(double mean, double deviation) {
  if (!(deviation > 0)) throw ArgumentError(text("normalize: the deviation is {}, it must be positive", deviation));
  if (!std::isfinite(mean) || !std::isfinite(deviation))
    throw ArgumentError(text("normalize: the mean is {} and the deviation {}: both must be finite", mean, deviation));
}

}  // namespace skein::inline SKEIN_ABI::data
