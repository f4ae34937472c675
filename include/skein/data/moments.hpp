// SPDX-License-Identifier: Apache-2.0
// Mean and deviation of all values of a data set, as they are served: what normalize() takes.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "view.hpp"

namespace skein::inline SKEIN_ABI::data {

/// Mean and (population) standard deviation of all values of all samples.
struct Moments {
  double mean = 0, deviation = 0;
};

/// One pass over the data set, in double. Allocates one sample. Throws ArgumentError for a value that is not finite.
Moments moments(DatasetView data);

}  // namespace skein::inline SKEIN_ABI::data

#if !SKEIN_COMPILED
#include "moments.ipp"
#endif
