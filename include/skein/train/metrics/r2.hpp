// SPDX-License-Identifier: Apache-2.0
// R2, the coefficient of determination: the share of the targets' variance that the outputs explain.
#pragma once
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "../metric.hpp"
#include "accuracy.hpp"

namespace skein::inline SKEIN_ABI::train {

/// 1 - sum (target - output)^2 / sum (target - mean)^2 over all samples, and the mean of that over the columns: 1 is perfect, 0
/// what the mean of the targets would have. Sums are in double, compensated (Kahan, 1965): with a mean of 10^k deviations, some
/// 15 - 2 k digits are right, whatever the number of samples; from k = 7 on targets are taken for equal.
class R2 {
 public:
  static constexpr std::string_view name() { return "R2"; }
  void begin(int, int values) {
    sums_.assign(1 + 3 * static_cast<std::size_t>(values), 0);
    rests_.assign(sums_.size(), 0);
  }
  template <class Scalar> void add(Rows<Scalar> outputs, Rows<Scalar> targets) {
    detail::check_targets(outputs, targets, "R2");
    if (sums_.empty() || sums_[0] == 0) begin(outputs.width, outputs.width);
    for (long i = 0; i < outputs.count; ++i)
      for (std::size_t j = 0; j < static_cast<std::size_t>(outputs.width); ++j) {
        const double target = static_cast<double>(targets[i][j]), error = target - static_cast<double>(outputs[i][j]);
        add_to(1 + 3 * j, target);
        add_to(2 + 3 * j, target * target);
        add_to(3 + 3 * j, error * error);
      }
    sums_[0] += static_cast<double>(outputs.count);
  }
  std::span<double> sums() { return {sums_.data(), sums_.size()}; }
  /// NaN for less than two samples, and where a target or an output is. Of targets that are all the same: 1 for outputs without
  /// error, else 0, as in scikit-learn.
  double value() const;

 private:
  void add_to(std::size_t place, double value) {
    const double own = value - rests_[place], sum = sums_[place] + own;
    rests_[place] = (sum - sums_[place]) - own;
    sums_[place] = sum;
  }

  std::vector<double> rests_;  // what sums_ have too much, by rounding
  std::vector<double> sums_;   // samples; of each column targets, their squares, squared errors
};

}  // namespace skein::inline SKEIN_ABI::train

#if !SKEIN_COMPILED
#include "r2.ipp"
#endif
