// SPDX-License-Identifier: Apache-2.0
// The first stage of a step: forward, loss, backward of this rank's samples. As gradients become ready, from the back, the policy
// hears of it (policy_sink.hpp) and may begin to exchange them.
#pragma once
#include "policy_sink.hpp"
#include "worker_step.hpp"

namespace skein::inline SKEIN_ABI::train {

/// The stage that makes the gradients of this rank.
struct ForwardBackward {
  template <class Parts> static constexpr bool used = true;
  static constexpr bool of_updates = false, waits = false;

  template <class Parts> static bool run(WorkerStep<Parts>& w) {
    w.parts.curvature.begin_pass(w);
    w.parts.executor->forward_backward(w.worker, *w.step.batch, w.step.call, w.step.sinks);
    return true;
  }
};

}  // namespace skein::inline SKEIN_ABI::train
