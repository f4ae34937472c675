// SPDX-License-Identifier: Apache-2.0
// The bodies of moments.hpp.
#pragma once
#include "../core/error.hpp"
#include "../core/text.hpp"
#include "moments.hpp"

namespace skein::inline SKEIN_ABI::data {

SKEIN_INLINE Moments moments(DatasetView data) {
  const long n = data.sample_extents().count();
  const double values = static_cast<double>(n);
  std::vector<double> sample(static_cast<std::size_t>(n));
  double mean = 0, squares = 0;  // of the samples so far: squares of the distances from their mean (Chan, Golub, LeVeque, 1979)
  for (std::int64_t i = 0; i < data.size(); ++i) {
    data.gather(Indices(&i, 1), sample.data(), n);
    const double shift = sample[0], before = static_cast<double>(i);
    double s = 0, q = 0;
    for (const double v : sample) {
      if (!std::isfinite(v)) throw ArgumentError(text("moments: a value of sample {} is not finite", i));
      s += v - shift, q += (v - shift) * (v - shift);
    }
    const double step = shift + s / values - mean;
    mean += step / (before + 1);
    squares += q - s * s / values + step * step * values * (before / (before + 1));
  }
  const double count = std::max(1.0, values * static_cast<double>(data.size()));
  return {mean, std::sqrt(std::max(0.0, squares / count))};
}

}  // namespace skein::inline SKEIN_ABI::data
