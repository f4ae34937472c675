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
inline double median_error(const Level& level, std::span<const MessageTime> times) {
  std::vector<double> errors;
  for (const MessageTime& t : times) errors.push_back(std::abs((level.alpha + level.beta * t.bytes) / t.seconds - 1));
  if (errors.empty()) return 0;
  const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
  std::nth_element(errors.begin(), middle, errors.end());
  return *middle;
}

namespace detail {
/// Least squares of weight (a + b x - y)^2, with a and b at least 0.
inline Level weighted_fit(std::span<const MessageTime> times, std::span<const double> weights) {
  double w = 0, wx = 0, wy = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    w += weights[i];
    wx += weights[i] * times[i].bytes;
    wy += weights[i] * times[i].seconds;
  }
  double xx = 0, xy = 0, through = 0, square = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const double x = times[i].bytes - wx / w;
    xx += weights[i] * x * x;
    xy += weights[i] * x * (times[i].seconds - wy / w);
    through += weights[i] * times[i].bytes * times[i].seconds;
    square += weights[i] * times[i].bytes * times[i].bytes;
  }
  const double beta = xx > 0 ? xy / xx : 0, alpha = (wy - beta * wx) / w;
  if (beta < 0 || xx <= 0) return {wy / w, 0};
  if (alpha < 0) return {0, square > 0 ? through / square : 0};
  return {alpha, beta};
}
}  // namespace detail

/// Fits seconds = alpha + beta bytes, neither below 0. Throws ArgumentError where there are not two different sizes or a time is
/// not positive. Up to about a third of the times may be far off.
inline LevelFit fit_level(std::span<const MessageTime> times) {
  bool differ = false;
  for (const MessageTime& t : times) {
    if (!(t.seconds > 0) || !std::isfinite(t.seconds) || !(t.bytes >= 0) || !std::isfinite(t.bytes))
      throw ArgumentError(text("fit_level: a time must be positive and a size not negative; there is one of {} bytes in {} s",
                               t.bytes, t.seconds));
    differ = differ || t.bytes != times[0].bytes;
  }
  if (!differ) throw ArgumentError("fit_level: two different sizes at least; alpha and beta cannot be told apart otherwise");
  std::vector<double> weights(times.size());
  for (std::size_t i = 0; i < times.size(); ++i) weights[i] = 1 / (times[i].seconds * times[i].seconds);
  LevelFit fit{detail::weighted_fit(times, weights), 0, 0};
  const auto error = [&](std::size_t i) {
    return std::abs(fit.level.alpha + fit.level.beta * times[i].bytes - times[i].seconds) / times[i].seconds;
  };
  for (int turn = 0; turn < 60; ++turn) {  // least absolute relative errors
    for (std::size_t i = 0; i < times.size(); ++i)
      weights[i] = 1 / (times[i].seconds * times[i].seconds * std::max(error(i), 1e-9));
    fit.level = detail::weighted_fit(times, weights);
  }
  const double limit = std::max(4 * 1.4826 * median_error(fit.level, times), 1e-6);
  for (std::size_t i = 0; i < times.size(); ++i) {
    const bool far = error(i) > limit;
    fit.left_out += far;
    weights[i] = far ? 0 : 1 / (times[i].seconds * times[i].seconds);
  }
  fit.level = detail::weighted_fit(times, weights);
  fit.median_error = median_error(fit.level, times);
  return fit;
}

}  // namespace skein::inline SKEIN_ABI::plan
