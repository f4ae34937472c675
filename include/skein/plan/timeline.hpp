// SPDX-License-Identifier: Apache-2.0
// When the steps of a pipeline run: as a table says for given lengths, or as a run was measured. What pictures are drawn of.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "schedule_check.hpp"

namespace skein::inline SKEIN_ABI::plan {

/// When each rank did each task of a schedule: what is drawn.
struct Timeline {
  std::string title{};
  int ranks = 1, stages = 1;
  std::vector<TimedStep> steps{};  ///< times in any unit, from 0

  double length() const {
    double end = 0;
    for (const TimedStep& t : steps) end = std::max(end, t.end);
    return end;
  }
  /// Share of ranks * length in which a rank does nothing.
  double bubble() const {
    double busy = 0;
    for (const TimedStep& t : steps) busy += t.end - t.begin;
    return length() > 0 ? 1 - busy / (ranks * length()) : 0;
  }
  /// The mean length of a kind of step; 0 where there is none.
  double mean(Task task) const {
    double sum = 0;
    int n = 0;
    for (const TimedStep& t : steps)
      if (t.step.task == task) sum += t.end - t.begin, ++n;
    return n > 0 ? sum / n : 0;
  }
};

/// A table played with these lengths; empty where it is not sound.
template <class Lengths = TaskLengths> Timeline timeline_of(const Schedule& s, const Lengths& lengths = {}) {
  Timeline t{std::string(s.kind), s.ranks, s.stages, {}};
  if (!play(s, lengths, [&](const TimedStep& step) { t.steps.push_back(step); }).sound()) t.steps.clear();
  return t;
}

/// The same steps from time 0.
inline Timeline from_zero(Timeline t) {
  if (t.steps.empty()) return t;
  double first = t.steps.front().begin;
  for (const TimedStep& s : t.steps) first = std::min(first, s.begin);
  for (TimedStep& s : t.steps) s.begin -= first, s.end -= first;
  return t;
}

}  // namespace skein::inline SKEIN_ABI::plan
