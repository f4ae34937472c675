// SPDX-License-Identifier: Apache-2.0
// The bodies of level_fit.hpp.
#pragma once
#include "level_fit.hpp"

namespace skein::inline SKEIN_ABI::plan {

SKEIN_INLINE double median_error(const Level& level, std::span<const MessageTime> times) {
  std::vector<double> errors;
  for (const MessageTime& t : times) errors.push_back(std::abs((level.alpha + level.beta * t.bytes) / t.seconds - 1));
  if (errors.empty()) return 0;
  const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
  std::nth_element(errors.begin(), middle, errors.end());
  return *middle;
}

}  // namespace skein::inline SKEIN_ABI::plan

namespace skein::inline SKEIN_ABI::plan::detail {

SKEIN_INLINE Level weighted_fit(std::span<const MessageTime> times, std::span<const double> weights) {
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

}  // namespace skein::inline SKEIN_ABI::plan::detail

namespace skein::inline SKEIN_ABI::plan {

SKEIN_INLINE LevelFit fit_level(std::span<const MessageTime> times) {
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
