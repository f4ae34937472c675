// SPDX-License-Identifier: Apache-2.0
// The bodies of moments.hpp.
#pragma once
#include "moments.hpp"

namespace skein::inline SKEIN_ABI::data {

SKEIN_INLINE Moments moments(DatasetView data) {
  const long n = data.sample_extents().count();
  const double values = static_cast<double>(n);
  std::vector<float> sample(static_cast<std::size_t>(n));
  double mean = 0, squares = 0;  // of the samples so far: squares of the distances from their mean (Chan, Golub, LeVeque, 1979)
  for (std::int64_t i = 0; i < data.size(); ++i) {
    data.gather(Indices(&i, 1), sample.data(), n);
    const double shift = static_cast<double>(sample[0]), before = static_cast<double>(i);
    double s = 0, q = 0;
    for (const float v : sample) {
      const double distance = static_cast<double>(v) - shift;
      s += distance, q += distance * distance;
    }
    const double step = shift + s / values - mean;
    mean += step / (before + 1);
    squares += q - s * s / values + step * step * values * (before / (before + 1));
  }
  const double count = std::max(1.0, values * static_cast<double>(data.size()));
  return {mean, std::sqrt(std::max(0.0, squares / count))};
}

}  // namespace skein::inline SKEIN_ABI::data
