// SPDX-License-Identifier: Apache-2.0
// Mean and deviation of all values of a data set, as they are served: what normalise() takes.
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

/// One pass over the data set, in double. Allocates one sample.
inline Moments moments(DatasetView data) {
  const long n = data.sample_extents().count();
  std::vector<float> sample(static_cast<std::size_t>(n));
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < data.size(); ++i) {
    data.gather(Indices(&i, 1), sample.data(), n);
    double s = 0, q = 0;
    for (const float v : sample) s += v, q += static_cast<double>(v) * v;
    sum += s;
    squares += q;
  }
  const double count = std::max(1.0, static_cast<double>(n) * static_cast<double>(data.size())), mean = sum / count;
  return {mean, std::sqrt(std::max(0.0, squares / count - mean * mean))};
}

}  // namespace skein::inline SKEIN_ABI::data
