// SPDX-License-Identifier: Apache-2.0
// Two stages of a step on the host: BeginUpdate, in which the sum of the gradients gets its factor, and the last one, Update, in
// which the optimizer's pass reads it. What changes the gradient (LookForOverflow, Transform) runs in between.
#pragma once
#include "worker_step.hpp"

namespace skein::inline SKEIN_ABI::train {

/// The gradients are there: each worker takes its part of the arena.
struct BeginUpdate {
  template <class Parts> static constexpr bool used = true;
  static constexpr bool of_updates = true, waits = true;

  template <class Parts> static bool run(WorkerStep<Parts>& w) {
    const StepState<Parts>& s = w.step;
    constexpr bool own = Parts::PolicyState::local_sums;
    if (s.finite && !w.finite_on_all(own ? w.parts.update_memory.loss : s.sums.loss)) [[unlikely]]
      return w.leave_out();
    const double factor = w.parts.policy_state.gradient_factor();
    double scale = s.weight > 0 ? factor * s.expected_weight / s.weight : 0;
    if constexpr (Parts::Model::scales_loss) scale /= s.call.loss_scale;
    w.begin_update(scale);
    return true;
  }
};

/// The stage of the optimizer's pass on the host.
struct Update {
  template <class Parts> static constexpr bool used = true;
  static constexpr bool of_updates = true, waits = false;

  template <class Parts> static bool run(WorkerStep<Parts>& w) {
    auto* const parameters = w.parts.weights->unguarded().data;
    w.each([&](long begin, long end) { w.parts.optimizer.update(parameters, w.call, begin, end); });
    return true;
  }
};

}  // namespace skein::inline SKEIN_ABI::train
