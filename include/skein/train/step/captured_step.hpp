// SPDX-License-Identifier: Apache-2.0
// What a step has to do with its capture by a device: may it be captured, by what is a captured one found again, and do all ranks
// take part.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "step_parts.hpp"

namespace skein::inline SKEIN_ABI::train {

/// All that a captured step bakes in.
template <class Parts> CapturedStepKey captured_step_key(const Parts& parts, const StepState<Parts>& step) {
  const auto& batch = *step.batch;
  return {.x = is_tokens<typename Parts::Model::input> ? static_cast<const void*>(batch.tokens) : batch.x,
          .labels = batch.labels,
          .targets = batch.targets,
          .pitch = batch.pitch,
          .target_pitch = batch.target_pitch,
          .count = batch.count,
          .expected_weight = step.expected_weight,
          .clip = step.clip,
          .gradient_factor = parts.policy_state.gradient_factor(),
          .accumulate = step.call.accumulate,
          .update = step.update,
          .exchange = step.exchange,
          .global_count = static_cast<long>(batch.global_count)};
}

/// Collectives within a step must be such that the device's stream can keep them: their policy state says `capturable`; and
/// nothing may wait for a number, or ask the other ranks for one. The host's steps are not captured.
template <class Parts>
constexpr bool capturable([[maybe_unused]] const Parts& parts, [[maybe_unused]] const StepState<Parts>& step) {
  using PolicyState = typename Parts::PolicyState;
  constexpr bool in_each_pass = PolicyState::capabilities.has(parallel::Capability::reduces_statistics);
  if constexpr (on_host<typename Parts::Device>) return false;
  else
    return (PolicyState::capturable || !(step.exchange || in_each_pass)) && !asks_other_ranks(parts, step) &&
           !(step.update && optim::needs_tensors<typename Parts::Optimizer>);
}

/// Is a step that shall be captured one that can be: else the device keeps one line about why not.
template <class Parts> bool captures([[maybe_unused]] Parts& parts, [[maybe_unused]] const StepState<Parts>& step) {
  if (capturable(parts, step)) return true;
  if constexpr (!on_host<typename Parts::Device>)
    if (parts.device.note().empty())
      parts.device.set_note(asks_other_ranks(parts, step) || (step.exchange && !Parts::PolicyState::capturable)
                                ? "steps are launched kernel by kernel, since the policy's communication cannot be captured"
                                : "steps are launched kernel by kernel, since a transform of tensors may wait for numbers");
  return false;
}

/// The number by which messages call the first rank that says so; -1: none does. All ranks take part.
template <class PolicyState> int first_refusing(PolicyState& state, bool refused) {
  const std::uint64_t own[] = {refused};
  const std::vector<std::uint64_t> all = state.numbers_of_all(own);
  const auto at = std::find(all.begin(), all.end(), 1u);
  return at == all.end() ? -1 : state.rank_names().number(static_cast<int>(at - all.begin()));
}

}  // namespace skein::inline SKEIN_ABI::train
