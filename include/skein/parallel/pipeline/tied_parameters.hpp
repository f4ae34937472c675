// SPDX-License-Identifier: Apache-2.0
// Parameters of a pipeline that are one, in two stages: their names, and where they are.
#pragma once
#include <string>
#include <string_view>

#include "../../core/error.hpp"
#include "../../device/memory.hpp"
#include "../../optim/groups.hpp"
#include "../../plan/program.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// Two parameters of the same extents, by their names in the whole network, that are one: they begin as the first, and each step
/// moves both by the sum of their gradients, which counts once in a norm.
struct TiedParameters {
  std::string first, second;
};

namespace detail {
/// Where both sides of a tied pair are: the stage of each, and the offset there.
template <class Scalar> struct TiedPair {
  int stage[2] = {-1, -1};
  long offset[2] = {0, 0}, stored = 0;
  Arena<Scalar> other;  ///< the values of the side that another process has
};
/// What the rules say of one parameter.
inline optim::ParameterGroupRange rule_of(const optim::Groups& groups, std::string_view name, const plan::Entry& e) {
  optim::ParameterGroupRange rule = optim::resolve(groups, {{name, e.offset, e.offset + e.stored, e.decay}}).front();
  rule.begin = rule.end = 0;
  return rule;
}
/// Throws ArgumentError unless the rules treat both alike.
inline void check_rules_of_tied(const TiedParameters& t, bool alike) {
  if (!alike)
    throw ArgumentError("Pipeline: .tied: the rules of .groups give '" + t.first + "' and '" + t.second +
                        "', which are one parameter, different rates or decays, or freeze one of them: name both in a rule");
}
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::parallel
