// SPDX-License-Identifier: Apache-2.0
// The mean absolute error over all values of all rows, accumulated in double.
#pragma once
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <string_view>

#include "accuracy.hpp"
#include "../metric.hpp"

namespace skein::inline SKEIN_ABI::train {

/// Mean of |output - target|; NaN before the first value.
class MeanAbsoluteError {
 public:
  static constexpr std::string_view name() { return "mean absolute error"; }
  template <class Scalar> void add(Rows<Scalar> outputs, Rows<Scalar> targets) {
    detail::check_targets(outputs, targets, "mean absolute error");
    for (long i = 0; i < outputs.count; ++i)
      for (std::size_t j = 0; j < static_cast<std::size_t>(outputs.width); ++j)
        sums_[0] += std::fabs(static_cast<double>(outputs[i][j]) - static_cast<double>(targets[i][j]));
    sums_[1] += static_cast<double>(outputs.count) * outputs.width;
  }
  std::span<double> sums() { return sums_; }
  double value() const { return sums_[1] > 0 ? sums_[0] / sums_[1] : std::nan(""); }

 private:
  std::array<double, 2> sums_{};
};

}  // namespace skein::inline SKEIN_ABI::train
