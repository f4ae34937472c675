// SPDX-License-Identifier: Apache-2.0
// The bodies of state.hpp.
#pragma once
#include "state.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::optim {

SKEIN_INLINE std::vector<std::string> names_of(std::span<const plan::PathPart> paths, std::span<const plan::Entry> entries) {
  std::vector<std::string> names;
  for (const plan::Entry& e : entries) names.emplace_back(std::string_view(plan::name_of(paths, e)));
  return names;
}

SKEIN_INLINE std::vector<ParameterGroupRange> resolve(const Groups& groups, std::span<const plan::Entry> entries,
                                                      const std::vector<std::string>& names) {
  std::vector<ParameterEntry> table;
  for (const plan::Entry& e : entries) table.push_back({names[table.size()], e.offset, e.offset + e.stored, e.decay});
  return resolve(groups, table);
}

namespace detail {
SKEIN_INLINE void refuse_model(long bound, long given, bool whole) {
  if (!whole) throw ArgumentError("step: this optimizer has state of a part of the parameters: update() takes the part");
  throw ArgumentError(
      text("step: the optimizer was made with a model whose {} parameters (padding included) lie otherwise than the "
           "{} of this one: each model has an optimizer of its own",
           bound, given));
}
SKEIN_INLINE void refuse_other_weights() {
  throw ArgumentError(
      "step: the optimizer was made with another model, whose momentum and step count it has: each model has an optimizer of its "
      "own");
}
SKEIN_INLINE void refuse_gradients(nn::GradientState state) {
  if (state == nn::GradientState::lost)
    throw ArgumentError("step: the call that was to make the gradients has thrown: make them again before the step");
  throw ArgumentError(
      state == nn::GradientState::used
          ? "step: these gradients have made a step already: executor.forward_backward(batch) makes new ones before "
            "each step"
          : "step: the model has no gradients: executor.forward_backward(batch) makes them before each step");
}
SKEIN_INLINE void refuse_rate(double lr) {
  throw ArgumentError(text("step: .lr is {}: a rate is finite and not negative; without it the optimizer's own", lr));
}
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::optim

SKEIN_END_COLD
