// SPDX-License-Identifier: Apache-2.0
// The bodies of timeline.hpp.
#pragma once
#include "timeline.hpp"

namespace skein::inline SKEIN_ABI::plan {

SKEIN_INLINE double Timeline::length() const {
  double end = 0;
  for (const TimedStep& t : steps) end = std::max(end, t.end);
  return end;
}

SKEIN_INLINE double Timeline::bubble() const {
  double busy = 0;
  for (const TimedStep& t : steps) busy += t.end - t.begin;
  return length() > 0 ? 1 - busy / (ranks * length()) : 0;
}

SKEIN_INLINE double Timeline::mean(Task task) const {
  double sum = 0;
  int n = 0;
  for (const TimedStep& t : steps)
    if (t.step.task == task) sum += t.end - t.begin, ++n;
  return n > 0 ? sum / n : 0;
}

SKEIN_INLINE Timeline from_zero(Timeline t) {
  if (t.steps.empty()) return t;
  double first = t.steps.front().begin;
  for (const TimedStep& s : t.steps) first = std::min(first, s.begin);
  for (TimedStep& s : t.steps) s.begin -= first, s.end -= first;
  return t;
}

}  // namespace skein::inline SKEIN_ABI::plan
