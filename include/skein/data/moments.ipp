// SPDX-License-Identifier: Apache-2.0
// The bodies of moments.hpp.
#pragma once
#include "moments.hpp"

namespace skein::inline SKEIN_ABI::data {

SKEIN_INLINE Moments moments(DatasetView data) {
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
