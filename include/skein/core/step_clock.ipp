// SPDX-License-Identifier: Apache-2.0
// The bodies of step_clock.hpp.
#pragma once
#include "clock.hpp"
#include "step_clock.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI {

SKEIN_INLINE StepClock::StepClock() : last_(seconds_now()) {}

SKEIN_INLINE void StepClock::lap(StepPart part) {
  const double now = seconds_now();
  seconds_[static_cast<std::size_t>(part)] += now - last_;
  last_ = now;
}

SKEIN_INLINE void StepClock::restart() { *this = StepClock{}; }

SKEIN_INLINE double StepClock::seconds() const {
  double all = 0;
  for (const double s : seconds_) all += s;
  return all;
}

}  // namespace skein::inline SKEIN_ABI

SKEIN_END_COLD
