// SPDX-License-Identifier: Apache-2.0
// The bodies of axis.hpp.
#pragma once
#include <algorithm>
#include <limits>

#include "axis.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::draw {

SKEIN_INLINE double Axis::at(double value) const {
  if (logarithmic && std::isinf(high / low)) return (std::log(value) - std::log(low)) / (std::log(high) - std::log(low));
  if (logarithmic) return std::log(value / low) / std::log(high / low);
  return (value / 2 - low / 2) / (high / 2 - low / 2);  // halves: what is between the ends may be more than a double holds
}

SKEIN_INLINE Axis Axis::linear(double least, double greatest, int intervals) {
  constexpr double most = std::numeric_limits<double>::max(), least_length = 1e-300;  // shorter, steps have no digits
  const double largest = std::max(std::fabs(least), std::fabs(greatest));
  if (!(greatest - least > std::max(1e-12 * largest, least_length))) {
    const double around = std::fabs(least) * 0.1 > least_length ? std::fabs(least) * 0.1 : 0.5;
    greatest = std::min(least + around, most);
    least = std::max(least - around, -most);
  }
  const double step = round_step((greatest / 2 - least / 2) / intervals * 2);
  const double first = std::floor(least / step + 1e-9), last = std::ceil(greatest / step - 1e-9);
  Axis axis{std::max(first * step, -most), std::min(last * step, most), false, {}};
  for (double i = first; i <= last; ++i)
    if (std::isfinite(i * step)) axis.ticks.push_back(i * step);
  return axis;
}

SKEIN_INLINE Axis Axis::whole(long least, long greatest, int most_ticks) {
  const double from = static_cast<double>(least), to = static_cast<double>(greatest);
  Axis axis{from, greatest > least ? to : from + 1, false, {}};
  const double step = std::max(1.0, std::floor(round_step((to - from) / most_ticks)));
  const double first = std::ceil(from / step) * step;
  for (long i = 0; first + static_cast<double>(i) * step <= to; ++i) axis.ticks.push_back(first + static_cast<double>(i) * step);
  if (axis.ticks.empty() || (first > from && first - from >= 0.6 * step)) axis.ticks.insert(axis.ticks.begin(), from);
  return axis;
}

SKEIN_INLINE Axis Axis::log10(double least, double greatest) {
  Axis axis{least, greatest, true, {}};
  const int from = static_cast<int>(std::floor(std::log10(least))), to = static_cast<int>(std::ceil(std::log10(greatest)));
  const bool few = to - from <= 4;
  const int every = (to - from) / 13 + 1;  // so that labels do not touch
  for (int exponent = from; exponent <= to; ++exponent)
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (exponent % every != 0) continue;
      const double tick = factor * std::pow(10.0, exponent);
      if ((few || factor == 1.0) && tick >= least * 0.999 && tick <= greatest * 1.001) axis.ticks.push_back(tick);
    }
  if (axis.ticks.size() >= 2) return axis;
  axis.ticks.clear();  // a scale is read between two ticks
  for (const double tick : linear(least, greatest, 4).ticks)
    if (tick >= least && tick <= greatest) axis.ticks.push_back(tick);
  return axis;
}

SKEIN_INLINE double Axis::round_step(double raw) {
  const double power = std::pow(10.0, std::floor(std::log10(raw > 0 ? raw : 1.0)));
  const double digit = raw / power;
  return power * (digit <= 1.0001 ? 1 : digit <= 2.0001 ? 2 : digit <= 5.0001 ? 5 : 10);
}

}  // namespace skein::inline SKEIN_ABI::draw

SKEIN_END_COLD
