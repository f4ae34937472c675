// SPDX-License-Identifier: Apache-2.0
// The bodies of r2.hpp.
#pragma once
#include <cmath>
#include <limits>

#include "r2.hpp"

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE double R2::value() const {
  if (sums_.empty() || sums_[0] < 2) return std::nan("");
  double sum = 0;
  const std::size_t columns = sums_.size() / 3;
  for (std::size_t j = 0; j < columns; ++j) {
    const double squares = sums_[2 + 3 * j], error = sums_[3 + 3 * j];
    const double spread = squares - sums_[1 + 3 * j] * sums_[1 + 3 * j] / sums_[0];
    const bool equal = spread <= 16 * std::numeric_limits<double>::epsilon() * squares;  // but for rounding
    sum += std::isnan(spread + error) ? std::nan("") : !equal ? 1 - error / spread : error == 0 ? 1 : 0;
  }
  return sum / static_cast<double>(columns);
}

}  // namespace skein::inline SKEIN_ABI::train
