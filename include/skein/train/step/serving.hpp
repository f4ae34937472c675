// SPDX-License-Identifier: Apache-2.0
// What a rank that serves does in place of steps: the policy receives gradients, and the stages of an update change and read them
// as on a rank that trains, in this rank's part of the parameters.
#pragma once
#include <functional>

#include "run_stages.hpp"
#include "transform.hpp"
#include "update.hpp"

namespace skein::inline SKEIN_ABI::train {

/// Returns when those that train have finished. factor(step): the schedule's, from 0; clip_norm as in optim::StepOptions.
template <class Parts, class Factor> class ServerStep {
  using Scalar = typename Parts::Scalar;

 public:
  ServerStep(Parts& parts, const Factor& factor, double clip_norm, const std::function<int()>& heard)
      : parts_(parts), factor_(factor), heard_(heard), clip_(optim::clip_norm_of(parts.optimizer.optimizer(), clip_norm)) {}

  void run() {
    parts_.update_memory.serve(parts_.model->gradient_arena().data, Parts::stored);
    parts_.policy_state.serve(
        {this, [](void* self, const parallel::ShardUpdate& u) { static_cast<ServerStep*>(self)->update(u); },
         parts_.optimizer.arrays(),
         [](void* self, int k) -> void* { return static_cast<ServerStep*>(self)->parts_.optimizer.array(k).data; },
         [](void* self) -> int {
           const auto& heard = static_cast<ServerStep*>(self)->heard_;
           return heard ? heard() : 0;
         }});
  }

 private:
  /// By what lies in the gradient arena, in this rank's part.
  void update(const parallel::ShardUpdate& u) {
    const auto lease = parts_.model->modify();
    StepState<Parts> step;
    step.number = u.update;
    step.lr = static_cast<double>(parts_.optimizer.optimizer().lr) * static_cast<double>(factor_(u.step - 1)) * u.rate;
    step.clip = clip_;
    step.exchange = true;  // one array has all gradients
    const Worker alone;
    WorkerStep<Parts> w(alone, parts_, step);
    w.begin_update(u.scale);
    StageList<Transform, Update>::run(w);
  }

  Parts& parts_;
  const Factor& factor_;
  const std::function<int()>& heard_;
  double clip_;
};

}  // namespace skein::inline SKEIN_ABI::train
