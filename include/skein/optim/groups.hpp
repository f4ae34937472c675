// SPDX-License-Identifier: Apache-2.0
// Parameter groups: rules on names and kinds, resolved once against the table of parameters into ranges of the arena. An
// optimizer carries its rules as .groups; a pass over the arena then is a pass over each range with its own rate and decay.
//
//     sk::optim::AdamW{.lr = 1e-3f, .weight_decay = 0.05f,
//                      .groups = {sk::optim::no_decay_on_biases_and_norms(), sk::optim::frozen("0.*")}};
#pragma once
#include <algorithm>
#include <cstdint>
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
GroupRule no_decay_on_biases_and_norms();
/// The rate of the parameters whose name matches, as a factor of the optimizer's.
inline GroupRule learning_rate(std::string pattern, float factor) { return {.pattern = std::move(pattern), .lr_factor = factor}; }
/// The weight decay of the parameters whose name matches, as a factor of the optimizer's.
GroupRule weight_decay(std::string pattern, float factor);
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
  std::int64_t since = 0;  ///< steps that were made before the first one that updated it: it was frozen (state_updates.hpp)
  friend bool operator==(const ParameterGroupRange&, const ParameterGroupRange&) = default;
  /// Both are treated alike, wherever they are.
  bool alike(const ParameterGroupRange& o) const {
    return lr_factor == o.lr_factor && decay_factor == o.decay_factor && frozen == o.frozen && since == o.since;
  }
};

/// How what stands at that place of the arena is treated; as without rules where no range has it.
ParameterGroupRange range_at(std::span<const ParameterGroupRange> ranges, long offset);
/// Is all that stands there frozen?
bool all_frozen(std::span<const ParameterGroupRange> ranges, long begin, long end);

/// The rules as ranges, sorted, not overlapping, neighbours that are alike joined (over the zeros that pad the arena too).
/// Throws ArgumentError for a rule that matches no parameter, and for a factor that is negative.
std::vector<ParameterGroupRange> resolve(const Groups& groups, const std::vector<ParameterEntry>& table);

}  // namespace skein::inline SKEIN_ABI::optim

#if !SKEIN_COMPILED
#include "groups.ipp"
#endif
