// SPDX-License-Identifier: Apache-2.0
// Alpha and beta from measured (bytes, seconds) pairs: least squares of the relative error, so that small and large messages
// count alike, against outliers: first least absolute errors (by reweighting), then without what is far from them, then least
// squares of the rest.
#pragma once
#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "../core/error.hpp"
#include "alpha_beta.hpp"

namespace skein::inline SKEIN_ABI::plan {

/// One measurement: best a minimum or median of several.
struct MessageTime {
  double bytes = 0, seconds = 0;
};

/// What fit_level found.
struct LevelFit {
  Level level{};
  double median_error = 0;  ///< median of |predicted - measured| / measured over all that was given
  int left_out = 0;         ///< outliers
};

/// Median of |predicted / measured - 1|.
double median_error(const Level& level, std::span<const MessageTime> times);

namespace detail {
/// Least squares of weight (a + b x - y)^2, with a and b at least 0.
Level weighted_fit(std::span<const MessageTime> times, std::span<const double> weights);
}  // namespace detail

/// Fits seconds = alpha + beta bytes, neither below 0. Throws ArgumentError where there are not two different sizes or a time is
/// not positive. Up to about a third of the times may be far off.
LevelFit fit_level(std::span<const MessageTime> times);

}  // namespace skein::inline SKEIN_ABI::plan

#if !SKEIN_COMPILED
#include "level_fit.ipp"
#endif
