// SPDX-License-Identifier: Apache-2.0
// The bodies of groups.hpp.
#pragma once
#include <cmath>

#include "groups.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::optim {

SKEIN_INLINE GroupRule no_decay_on_biases_and_norms() {
  return {.predicate = [](const ParameterEntry& p) { return !p.decay; }, .decay_factor = 0.0f, .may_match_nothing = true};
}

SKEIN_INLINE GroupRule weight_decay(std::string pattern, float factor) {
  return {.pattern = std::move(pattern), .decay_factor = factor};
}

/// Throws ArgumentError for a factor that is negative or no finite number.
inline void check_factors(const GroupRule& rule, std::size_t number) {
  for (const float factor : {rule.lr_factor.value_or(0), rule.decay_factor.value_or(0)})
    if (!(factor >= 0) || std::isinf(factor))
      throw ArgumentError(text("rule {} of .groups (\"{}\") has {}", number, rule.pattern,
                               (factor < 0 ? "a negative factor" : "a factor that is no finite number")));
}

/// The names of a table; of a long one the first six and the last two, which are those of the head.
inline std::string some_names(const std::vector<ParameterEntry>& table) {
  TextList names;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const bool left_out = table.size() > 8 && i >= 6 && i + 2 < table.size();
    if (!left_out) names.add(table[i].name);
    else if (i == 6) names.add("...");
  }
  return names.text();
}

SKEIN_INLINE ParameterGroupRange range_at(std::span<const ParameterGroupRange> ranges, long offset) {
  for (const ParameterGroupRange& r : ranges)
    if (r.begin <= offset && offset < r.end) return r;
  return {};
}

SKEIN_INLINE bool all_frozen(std::span<const ParameterGroupRange> ranges, long begin, long end) {
  return !ranges.empty() && std::all_of(ranges.begin(), ranges.end(), [&](const ParameterGroupRange& r) {
    return r.frozen || r.end <= begin || end <= r.begin;
  });
}

SKEIN_INLINE std::vector<ParameterGroupRange> resolve(const Groups& groups, const std::vector<ParameterEntry>& table) {
  std::vector<char> used(groups.rules.size(), 0);
  std::vector<ParameterGroupRange> ranges;
  ranges.reserve(table.size());
  for (const ParameterEntry& entry : table) {
    ParameterGroupRange range{entry.begin, entry.end};
    for (std::size_t r = 0; r < groups.rules.size(); ++r) {
      const GroupRule& rule = groups.rules[r];
      if (!matches(rule.pattern, entry.name) || (rule.predicate && !rule.predicate(entry))) continue;
      used[r] = 1;
      range.lr_factor = rule.lr_factor.value_or(range.lr_factor);
      range.decay_factor = rule.decay_factor.value_or(range.decay_factor);
      range.frozen = rule.freeze.value_or(range.frozen);
    }
    auto at = ranges.end();  // by their places: as the table nearly always is
    while (at != ranges.begin() && (at - 1)->begin > range.begin) --at;
    ranges.insert(at, range);
  }
  for (std::size_t r = 0; r < groups.rules.size(); ++r) {
    const GroupRule& rule = groups.rules[r];
    check_factors(rule, r);
    if (!used[r] && !rule.may_match_nothing) {
      throw ArgumentError(
          text("rule {} of .groups (\"{}\") matches no parameter; there are {}", r, rule.pattern, some_names(table)));
    }
  }
  std::vector<ParameterGroupRange> merged;
  for (const ParameterGroupRange& range : ranges) {
    if (range.begin == range.end) continue;
    if (!merged.empty() && merged.back().alike(range)) merged.back().end = range.end;
    else merged.push_back(range);
  }
  return merged;
}

}  // namespace skein::inline SKEIN_ABI::optim

SKEIN_END_COLD
