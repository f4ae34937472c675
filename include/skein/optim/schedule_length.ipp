// SPDX-License-Identifier: Apache-2.0
// The bodies of schedule_length.hpp.
#pragma once
#include <algorithm>
#include <cmath>

#include "../core/text.hpp"
#include "schedule_length.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::optim {

SKEIN_INLINE double Length::steps() const {
  if (!known())
    throw ArgumentError(
        "a schedule in epochs or in shares of the fit has no length outside of a fit: call bound({.steps = ..., "
        ".steps_per_epoch = ...}) first");
  return value_;
}

SKEIN_INLINE Length Length::bound(const FitLength& fit) const {
  Length same = *this;
  if (!known()) {
    const std::int64_t whole = unit_ == Unit::epochs ? fit.steps_per_epoch : fit.steps;
    if (whole < 1)
      throw ArgumentError(
          unit_ == Unit::epochs
              ? text("bound: the schedule has a length in epochs, and .steps_per_epoch is {}: give 1 or more", whole)
              : text("bound: the schedule is as long as the fit or a share of it, and .steps is {}: give 1 or more", whole));
    constexpr double most = 9e18;  // that there are numbers for
    same = Length(std::max<std::int64_t>(1, std::llround(std::min(most, value_ * static_cast<double>(whole)))));
  }
  if (of_warmup_ && fit.refuses_longer && fit.steps > 0 && same.value_ > static_cast<double>(fit.steps))
    throw ArgumentError(
        text("warmup: {} steps, and the fit has {}: the rate would never be reached; give fewer steps, or more .epochs",
             static_cast<std::int64_t>(same.value_), fit.steps));
  return same;
}

}  // namespace skein::inline SKEIN_ABI::optim

SKEIN_END_COLD
