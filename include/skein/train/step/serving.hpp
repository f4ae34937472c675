// SPDX-License-Identifier: Apache-2.0
// What a rank that serves does in place of steps: the policy receives gradients, and the optimizer, bound to this rank's part of
// the parameters, updates by them.
#pragma once
#include "step_parts.hpp"

namespace skein::inline SKEIN_ABI::train {

/// Returns when those that train have finished. factor(step): the schedule's, from 0.
template <class Parts, class Factor> class ServerStep {
  using Scalar = typename Parts::Scalar;

 public:
  ServerStep(Parts& parts, const Factor& factor) : parts_(parts), factor_(factor) {}

  void run() {
    parts_.policy_state.serve(
        {this, [](void* self, const parallel::ShardUpdate& u) { static_cast<ServerStep*>(self)->update(u); },
         parts_.optimizer.arrays(),
         [](void* self, int k) -> void* { return static_cast<ServerStep*>(self)->parts_.optimizer.array(k).data; }});
  }

 private:
  /// Of part of the parameters, by what lies in the gradient arena there.
  void update(const parallel::ShardUpdate& u) {
    const Scalar* gradients = parts_.model->gradient_arena().data;
    optim::StepCall<Scalar> call;
    call.step = u.update;
    call.lr = static_cast<double>(parts_.optimizer.optimizer().lr) * static_cast<double>(factor_(u.step - 1));
    call.gradient_scale = u.scale;
    call.gradients = &gradients;
    const auto lease = parts_.model->modify();
    parts_.optimizer.update(lease.data(), call, u.range.begin, u.range.end);
  }

  Parts& parts_;
  const Factor& factor_;
};

}  // namespace skein::inline SKEIN_ABI::train
