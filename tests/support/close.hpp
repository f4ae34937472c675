// SPDX-License-Identifier: Apache-2.0
// The one table of tolerances: c * epsilon * magnitude, c by what was computed.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

namespace support {

/// How many roundings a value may be away: named, so that a test says what it allows.
enum class Roundings { exact = 0, arithmetic = 4, function = 16, sum = 64, product = 256 };

/// |a - b| <= c * epsilon of S * the larger magnitude (at least `scale`, which stands for what was cancelled).
template <class S> bool close(S a, S b, Roundings c = Roundings::arithmetic, double scale = 0) {
  if (a == b) return true;
  if (std::isnan(static_cast<double>(a)) && std::isnan(static_cast<double>(b))) return true;
  const double x = static_cast<double>(a), y = static_cast<double>(b);
  return std::abs(x - y) <= static_cast<int>(c) * static_cast<double>(std::numeric_limits<S>::epsilon()) *
                                std::max({std::abs(x), std::abs(y), scale});
}

}  // namespace support
