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

  double length() const;
  /// Share of ranks * length in which a rank does nothing.
  double bubble() const;
  /// The mean length of a kind of step; 0 where there is none.
  double mean(Task task) const;
};

/// A table played with these lengths; empty where it is not sound.
template <class Lengths = TaskLengths> Timeline timeline_of(const Schedule& s, const Lengths& lengths = {}) {
  Timeline t{std::string(s.kind), s.ranks, s.stages, {}};
  if (!play(s, lengths, [&](const TimedStep& step) { t.steps.push_back(step); }).sound()) t.steps.clear();
  return t;
}

/// The same timeline, moved so that its first step begins at time 0.
Timeline from_zero(Timeline t);

}  // namespace skein::inline SKEIN_ABI::plan

#if !SKEIN_COMPILED
#include "timeline.ipp"
#endif
