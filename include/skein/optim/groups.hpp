// SPDX-License-Identifier: Apache-2.0
// Parameter groups: rules on names and kinds, resolved once against the table of parameters into ranges of the arena. An
// optimizer carries its rules as .groups; a pass over the arena then is a pass over each range with its own rate and decay.
//
//     sk::optim::AdamW{.lr = 1e-3f, .weight_decay = 0.05f,
//                      .groups = {sk::optim::no_decay_on_biases_and_norms(), sk::optim::frozen("0.*")}};
#pragma once
#include <algorithm>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../core/error.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// One parameter of the table: its name ("7.weight"), its stored elements in the arena, and whether the field's recipes
/// let weight decay act on it (not on biases and norms).
struct ParameterEntry {
  std::string_view name{};
  long begin = 0, end = 0;
  bool decay = true;
};

/// Which parameters, and what becomes of them. Where several rules match, the last one that sets a property wins.
struct GroupRule {
  std::string pattern = "*";                                  ///< of names: `*` stands for any text, `?` for one letter
  std::function<bool(const ParameterEntry&)> predicate = {};  ///< empty: every name that the pattern matches
  std::optional<float> lr_factor = {};                        ///< of the optimizer's lr
  std::optional<float> decay_factor = {};                     ///< of the optimizer's weight_decay
  std::optional<bool> freeze = {};
  bool may_match_nothing = false;  ///< else a rule without a parameter is an ArgumentError
};

/// The rules of an optimizer, in order.
struct Groups {
  std::vector<GroupRule> rules;

  Groups() = default;
  Groups(GroupRule rule) { rules.push_back(std::move(rule)); }
  Groups(std::initializer_list<GroupRule> list) : rules(list) {}
  bool empty() const { return rules.empty(); }
};

/// The recipe of most vision and language models: weight decay acts on weights, not on biases and normalisation layers.
inline GroupRule no_decay_on_biases_and_norms() {
  return {.predicate = [](const ParameterEntry& p) { return !p.decay; }, .decay_factor = 0.0f, .may_match_nothing = true};
}
/// The rate of the parameters whose name matches, as a factor of the optimizer's.
inline GroupRule learning_rate(std::string pattern, float factor) { return {.pattern = std::move(pattern), .lr_factor = factor}; }
/// The weight decay of the parameters whose name matches, as a factor of the optimizer's.
inline GroupRule weight_decay(std::string pattern, float factor) {
  return {.pattern = std::move(pattern), .decay_factor = factor};
}
/// Parameters whose name matches are not updated.
inline GroupRule frozen(std::string pattern) { return {.pattern = std::move(pattern), .freeze = true}; }
/// Takes back a `frozen` before it for the names that match.
inline GroupRule trainable(std::string pattern) { return {.pattern = std::move(pattern), .freeze = false}; }

/// Does the name match the pattern: `*` any text, dots too; `?` one letter.
constexpr bool matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0, star = std::string_view::npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

/// Neighbouring elements of the arena that are treated alike.
struct ParameterGroupRange {
  long begin = 0, end = 0;
  float lr_factor = 1, decay_factor = 1;
  bool frozen = false;
  friend bool operator==(const ParameterGroupRange&, const ParameterGroupRange&) = default;
};

/// The rules as ranges, sorted, not overlapping, neighbours that are alike joined (over the zeros that pad the arena too).
/// Throws ArgumentError for a rule that matches no parameter, and for a factor that is negative.
inline std::vector<ParameterGroupRange> resolve(const Groups& groups, std::span<const ParameterEntry> table) {
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
    ranges.push_back(range);
  }
  for (std::size_t r = 0; r < groups.rules.size(); ++r) {
    const GroupRule& rule = groups.rules[r];
    if (rule.lr_factor.value_or(0) < 0 || rule.decay_factor.value_or(0) < 0)
      throw ArgumentError("rule " + std::to_string(r) + " of .groups (\"" + rule.pattern + "\") has a negative factor");
    if (!used[r] && !rule.may_match_nothing) {
      std::string names;
      for (std::size_t i = 0; i < table.size() && i < 8; ++i) names += (i ? ", " : "") + std::string(table[i].name);
      throw ArgumentError("rule " + std::to_string(r) + " of .groups (\"" + rule.pattern +
                          "\") matches no parameter; there are " + names + (table.size() > 8 ? ", ..." : ""));
    }
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const ParameterGroupRange& a, const ParameterGroupRange& b) { return a.begin < b.begin; });
  std::vector<ParameterGroupRange> merged;
  for (const ParameterGroupRange& range : ranges) {
    if (range.begin == range.end) continue;
    if (!merged.empty() && merged.back().lr_factor == range.lr_factor && merged.back().decay_factor == range.decay_factor &&
        merged.back().frozen == range.frozen)
      merged.back().end = range.end;
    else merged.push_back(range);
  }
  return merged;
}

}  // namespace skein::inline SKEIN_ABI::optim
