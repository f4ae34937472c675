// SPDX-License-Identifier: Apache-2.0
// The bodies of state_updates.hpp.
#pragma once
#include <algorithm>

#include "state_updates.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::optim {

SKEIN_INLINE bool StateUpdates::all_steps() const {
  return std::all_of(of_rows.begin(), of_rows.end(), [&](std::int64_t n) { return n == steps; });
}

SKEIN_INLINE StateUpdates StateUpdates::part(plan::Range rows) const {
  StateUpdates p{.steps = steps};
  if (!of_rows.empty()) p.of_rows.assign(of_rows.begin() + rows.begin, of_rows.begin() + rows.end);
  return p;
}

SKEIN_INLINE StateUpdates StateUpdates::scaled_to(std::int64_t count) const {
  StateUpdates s{count, of_rows};
  const double share = steps > 0 ? static_cast<double>(count) / static_cast<double>(steps) : 0;
  for (std::int64_t& n : s.of_rows) n = n == steps ? count : static_cast<std::int64_t>(static_cast<double>(n) * share);
  return s;
}

SKEIN_INLINE bool StateUpdates::fits(std::size_t rows) const {
  return steps >= 0 && (of_rows.empty() || of_rows.size() == rows) &&
         std::all_of(of_rows.begin(), of_rows.end(), [&](std::int64_t n) { return n >= 0 && n <= steps; });
}

SKEIN_INLINE StateUpdates updates_after(const StateUpdates& before, std::int64_t steps, std::span<const plan::Entry> rows,
                                        std::span<const ParameterGroupRange> ranges, long dropped) {
  StateUpdates now{.steps = steps};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool frozen = range_at(ranges, rows[i].offset).frozen, gone = frozen && rows[i].offset < dropped;
    now.of_rows.push_back(gone ? 0 : before.of(i) + (frozen ? 0 : steps - before.steps));
  }
  return now;
}

SKEIN_INLINE std::vector<ParameterGroupRange> begun(const std::vector<ParameterGroupRange>& ranges,
                                                    std::span<const plan::Entry> rows, const StateUpdates& updates) {
  std::vector<ParameterGroupRange> cut;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].stored == 0) continue;
    ParameterGroupRange part = range_at(ranges, rows[i].offset);
    part.since = part.frozen ? 0 : updates.steps - updates.of(i);
    part.begin = rows[i].offset;
    part.end = rows[i].offset + rows[i].stored;
    if (!cut.empty() && cut.back().alike(part)) cut.back().end = part.end;
    else cut.push_back(part);
  }
  return cut;
}

}  // namespace skein::inline SKEIN_ABI::optim

SKEIN_END_COLD
