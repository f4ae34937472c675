// SPDX-License-Identifier: Apache-2.0
// The first stage of a step: forward, loss, backward of this rank's samples. As gradients become ready, from the back, the policy
// hears of it and may begin to exchange them.
#pragma once
#include "worker_step.hpp"

namespace skein::inline SKEIN_ABI::train {

/// The policy as the executor sees it; with it go the factors of a curvature that overlaps.
template <class Parts> struct PolicySink final : nn::GradientSink {
  using PolicyState = typename Parts::PolicyState;
  explicit PolicySink(Parts& p) : parts(p), state(p.policy_state) {}
  void gradient_ready(long begin, long end) override {
    if constexpr (Parts::overlaps_curvature)
      parts.curvature.gradient_ready(begin, end, [this](long from, long to) { state.gradient_ready(from, to); });
    else state.gradient_ready(begin, end);
  }
  void reduce_statistics([[maybe_unused]] double* values, [[maybe_unused]] long n) override {
    if constexpr (parallel::ReducesStatistics<PolicyState>) state.reduce_statistics(values, n);
  }
  /// What it wants to hear of the step of that number.
  nn::ExecutorSinks sinks(bool exchange, [[maybe_unused]] std::int64_t step) {
    if constexpr (Parts::overlaps_curvature) parts.curvature.begin_step(parts.optimizer.optimizer().curvature(), exchange, step);
    nn::ExecutorSinks s;
    if (exchange && PolicyState::virtual_shards == 0)
      s.gradients = this;  // else nothing is exchanged before the shards are summed
    if constexpr (parallel::ReducesStatistics<PolicyState>) s.statistics = this;
    return s;
  }
  Parts& parts;
  PolicyState& state;
};

/// The stage that makes the gradients of this rank.
struct ForwardBackward {
  template <class Parts> static constexpr bool used = true;
  static constexpr bool of_updates = false, waits = false;

  template <class Parts> static bool run(WorkerStep<Parts>& w) {
    if constexpr (optim::needs_curvature<typename Parts::Optimizer>)
      w.parts.curvature.begin_pass(w.parts.optimizer.optimizer().curvature(), w.worker, w.step.number + !w.step.update,
                                   static_cast<long>(w.step.batch->count), w.step.call.accumulate);
    w.parts.executor->forward_backward(w.worker, *w.step.batch, w.step.call, w.step.sinks);
    return true;
  }
};

}  // namespace skein::inline SKEIN_ABI::train
