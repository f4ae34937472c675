// SPDX-License-Identifier: Apache-2.0
// A picture of a pipeline's timeline as text: a line a rank, a column a unit of time. F, B, I, W: forward, backward, input
// gradient, weight gradient of that micro-batch; U: update; where a rank has several stages, a letter says which. A longer step
// goes on with dashes.
#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "timeline.hpp"

namespace skein::inline SKEIN_ABI::plan {

/// `unit`: of time in a column; 0: a hundredth of the length, or where it is more the shortest step, which counts as 1 at most.
std::string schedule_text(const Timeline& t, double unit = 0);

/// A picture of a table, with steps of these lengths (forward 1, backward 2).
std::string schedule_text(const Schedule& s, const TaskLengths& lengths = {});

}  // namespace skein::inline SKEIN_ABI::plan

#if !SKEIN_COMPILED
#include "schedule_text.ipp"
#endif
