// SPDX-License-Identifier: Apache-2.0
// The logical values of a parameter arena: what lies between the gaps that pad its rows. Compressors, norms and counts see these.
#pragma once
#include <span>
#include <vector>

#include "program.hpp"

namespace skein::inline SKEIN_ABI::plan {

/// Calls visit(entry, Range) for each unbroken run of logical values of the entries that lie in `within`, in the order of the
/// arena: one a parameter without gaps, else one a row. `entry` is its index.
template <class Visit> constexpr void for_each_run(std::span<const Entry> entries, Range within, Visit&& visit) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Entry& e = entries[i];
    const long count = e.extents.count();
    if (e.offset < within.begin || e.offset + e.stored > within.end || count == 0) continue;
    const long rows = e.stored == count ? 1 : count / e.extents.last(), values = count / rows, pitch = e.stored / rows;
    for (long r = 0; r < rows; ++r) visit(i, Range{e.offset + r * pitch, e.offset + r * pitch + values});
  }
}

/// The runs of a range, neighbours joined.
constexpr std::vector<Range> logical_runs(std::span<const Entry> entries, Range within) {
  std::vector<Range> runs;
  for_each_run(entries, within, [&](std::size_t, Range r) {
    if (!runs.empty() && runs.back().end == r.begin) runs.back().end = r.end;
    else runs.push_back(r);
  });
  return runs;
}

/// Elements in all runs together.
constexpr long count_of(std::span<const Range> runs) {
  long n = 0;
  for (const Range& r : runs) n += r.end - r.begin;
  return n;
}

}  // namespace skein::inline SKEIN_ABI::plan
