// SPDX-License-Identifier: Apache-2.0
// The stage at which gradients and sums become those of all ranks. Worker 0 waits for the policy; the others wait for it.
#pragma once
#include "virtual_shards.hpp"
#include "worker_step.hpp"

namespace skein::inline SKEIN_ABI::train {

/// The stage that ends the exchange of gradients.
struct ExchangeGradients {
  template <class Parts> static constexpr bool used = true;
  static constexpr bool of_updates = false, waits = true;

  template <class Parts> static bool run(WorkerStep<Parts>& w) {
    if (w.worker.index != 0) return true;
    w.parts.lap(StepPart::backward);  // of the slowest worker
    finish(w.parts, w.step);
    w.parts.lap(StepPart::synchronization);
    return true;
  }

 private:
  template <class Parts> static void finish(Parts& parts, StepState<Parts>& step) {
    using PolicyState = typename Parts::PolicyState;
    parts.executor->finish();
    if (step.exchange) parts.policy_state.finish_gradients();
    parts.curvature.finish_sums();
    if constexpr (!on_host<typename Parts::Device>) return;  // they stay where they are
    if constexpr (SumShards::used<Parts>) return SumShards::take_sums(parts, step);
    if (!step.exchange || PolicyState::local_sums) step.sums = parts.executor->sums();
    step.weight = step.sums.weight;
    if constexpr (PolicyState::local_sums) parts.update_memory.loss = step.sums.loss;
    if (!step.exchange) return;
    const nn::LossSums all = parts.sums_of_tail();
    step.weight = all.weight;
    if constexpr (PolicyState::local_sums) parts.update_memory.loss = all.loss;
    else step.sums = all;
  }
};

}  // namespace skein::inline SKEIN_ABI::train
