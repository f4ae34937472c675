// SPDX-License-Identifier: Apache-2.0
// How far two results are apart, before either is timed. A NaN stays: std::max(most, NaN) is most, and a result of NaNs would be
// as right as can be.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

namespace bench {

/// The larger of most and |d|; NaN where either is one, which is within no bound: write `!(d <= bound)`.
inline double larger(double most, double d) {
  return std::isnan(most) || std::isnan(d) ? std::numeric_limits<double>::quiet_NaN() : std::max(most, std::abs(d));
}

/// The greatest difference of n values to those that are expected, beside the greatest of these.
inline double apart(const float* got, const float* expected, long n) {
  double most = 0, large = 1e-30;
  for (long i = 0; i < n; ++i) {
    most = larger(most, static_cast<double>(got[i]) - static_cast<double>(expected[i]));
    large = larger(large, static_cast<double>(expected[i]));
  }
  return most / large;
}

}  // namespace bench
