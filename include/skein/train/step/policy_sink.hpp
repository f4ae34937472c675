// SPDX-License-Identifier: Apache-2.0
// PolicySink: what an executor says of the gradients that it has made goes to the policy, which may begin to exchange them while
// backward goes on. Of virtual shards (Reproducible) nothing is said: that policy has their sums (set_partial_sums) when it
// finishes the exchange. A policy may also read the gradients in the arena after the step, as ParameterServer does.
#pragma once
#include "../../nn/exec/gradient_sink.hpp"
#include "step_parts.hpp"
#include "virtual_shards.hpp"

namespace skein::inline SKEIN_ABI::train {

/// The policy as the executor sees it; curvature hears of the gradients before it.
template <class Parts> struct PolicySink final : nn::GradientSink {
  using PolicyState = typename Parts::PolicyState;
  explicit PolicySink(Parts& p) : parts(p), state(p.policy_state) {}
  void gradient_ready(long begin, long end) override {
    parts.curvature.gradient_ready(begin, end, [this](long from, long to) { state.gradient_ready(from, to); });
  }
  void reduce_statistics([[maybe_unused]] double* values, [[maybe_unused]] long n) override {
    if constexpr (parallel::ReducesStatistics<PolicyState>) state.reduce_statistics(values, n);
  }
  /// What it wants to hear of the step of that number.
  nn::ExecutorSinks sinks(bool exchange, std::int64_t step) {
    parts.curvature.begin_step(parts, exchange, step);
    nn::ExecutorSinks s;
    if (exchange && !SumShards::used<Parts>) s.gradients = this;  // else nothing is exchanged before the shards are summed
    if constexpr (parallel::ReducesStatistics<PolicyState>) s.statistics = this;
    return s;
  }
  Parts& parts;
  PolicyState& state;
};

}  // namespace skein::inline SKEIN_ABI::train
