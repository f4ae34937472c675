// SPDX-License-Identifier: Apache-2.0
// The first part of a training that its steps have made infinite or NaN: what fit looks at before it evaluates the model or keeps
// it.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "../data/finite.hpp"
#include "../parallel/concepts.hpp"
#include "host_copy.hpp"
#include "not_finite.hpp"
#include "saved_arrays.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train::detail {

/// The optimizer's groups, of the whole network: those of a pipeline's optimizer are of its stage.
template <class TrainStep> std::vector<optim::ParameterGroupRange> ranges_of_all(TrainStep& train_step) {
  if constexpr (parallel::SplitsModel<typename TrainStep::PolicyState>) return train_step.arrays().ranges();
  else return {train_step.optimizer().ranges().begin(), train_step.optimizer().ranges().end()};
}

/// In a sentence without its end: a weight that this process trains, a running statistic, an array of the optimizer, a factor of
/// Kfac, memory of the policy; "" where all of them are finite numbers. `host` is memory for the copies of a device's arrays.
template <class TrainStep>
std::string first_part_not_finite(TrainStep& train_step, HostCopy<typename TrainStep::Scalar, typename TrainStep::Device>& host) {
  using Scalar = typename TrainStep::Scalar;
  const auto& program = train_step.model().program;
  const std::vector<optim::ParameterGroupRange> of_all = ranges_of_all(train_step);
  const std::span<const optim::ParameterGroupRange> ranges{of_all.data(), of_all.size()};
  std::string found;
  const auto look = [&](plan::Range part, const Scalar* values, const auto& say) {
    const auto n = static_cast<std::size_t>(part.end - part.begin);
    const std::span<const Scalar> here(host.read(values, n, train_step.model().where()), n);
    if (found.empty() && !data::detail::finite(data::detail::greatest_magnitude(here))) found = say(here);
  };
  train_step.arrays().each_part(parallel::training_arrays::parameters, [&](plan::Range part, const Scalar* values) {
    look(part, values, [&](std::span<const Scalar> here) {
      return first_weight_not_finite<Scalar>(here, part, layers_with_parameters(program), ranges);
    });
  });
  train_step.arrays().each_part(parallel::training_arrays::buffers, [&](plan::Range part, const Scalar* values) {
    look(part, values, [&](std::span<const Scalar> here) {
      return first_buffer_not_finite<Scalar>(here, part, program.buffers(), program.parts());
    });
  });
  for (int a = parallel::training_arrays::optimizer; a < train_step.arrays().count(); ++a)
    train_step.arrays().each_part(a, [&](plan::Range part, const Scalar* values) {
      look(part, values, [&](std::span<const Scalar> here) {
        return first_state_not_finite<Scalar>(here, part, array_prefix(a), program.parameters(), program.parts(), ranges);
      });
    });
  if constexpr (keeps_curvature<TrainStep>)
    if (found.empty()) found = train_step.curvature().not_finite();
  return found.empty() ? train_step.policy_state().part_not_finite() : found;
}

}  // namespace skein::inline SKEIN_ABI::train::detail

SKEIN_END_COLD
