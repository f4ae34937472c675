// SPDX-License-Identifier: Apache-2.0
// The largest of many differences, which remembers a NaN: std::max(worst, NaN) is worst, and an array of NaNs would be 0 apart.
#pragma once
#include <algorithm>
#include <cmath>

namespace support {

/// The larger of worst and |d|; 1e300 where d is a NaN, and from then on. Not infinity: times a tolerance it has to stay larger.
inline double larger(double worst, double d) { return std::isnan(d) ? 1e300 : std::max(worst, std::abs(d)); }

}  // namespace support
