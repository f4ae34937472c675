// SPDX-License-Identifier: Apache-2.0
// The bodies of normalize.hpp.
#pragma once
#include <cmath>
#include <string>

#include "normalize.hpp"

namespace skein::inline SKEIN_ABI::data {

SKEIN_INLINE void check_normalization(double mean, double deviation) {
  if (!(deviation > 0)) throw ArgumentError("normalize: the deviation is " + std::to_string(deviation) + ", it must be positive");
  if (!std::isfinite(mean) || !std::isfinite(deviation))
    throw ArgumentError("normalize: the mean is " + std::to_string(mean) + " and the deviation " + std::to_string(deviation) +
                        ": both must be finite");
}

}  // namespace skein::inline SKEIN_ABI::data
