// SPDX-License-Identifier: Apache-2.0
// An axis of a plot: from the least and the greatest value to round ticks and labels, linear or logarithmic. Pure functions.
#pragma once
#include <cmath>
#include <vector>

#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::draw {

/// Maps values to [0, 1] between its ends. After Heckbert, "Nice numbers for graph labels" (Graphics Gems, 1990).
struct Axis {
  double low = 0, high = 1;
  bool logarithmic = false;
  std::vector<double> ticks;

  /// 0 at the low end, 1 at the high one.
  double at(double value) const;

  /// About so many intervals of 1, 2 or 5 times a power of ten; the ends are widened to ticks.
  static Axis linear(double least, double greatest, int intervals);
  /// Whole numbers from least to greatest, a tick at every so many that the labels do not touch.
  static Axis whole(long least, long greatest, int most_ticks);
  /// Ticks at powers of ten, of many decades at every so many that the labels do not touch, or at 1, 2, 5 times them where there
  /// are few; as of a linear axis where not even two of those lie between the ends. Both values positive.
  static Axis log10(double least, double greatest);
  /// The least of 1, 2, 5, 10 times a power of ten that is no less.
  static double round_step(double raw);
};

}  // namespace skein::inline SKEIN_ABI::draw

#if !SKEIN_COMPILED
#include "axis.ipp"
#endif
