// SPDX-License-Identifier: Apache-2.0
// Who uses a model, and the trainer that calculates with it, at a time: one training of one thread, or predictions. Ranks that
// are threads and share one object would all write its weights.
#pragma once
#include <optional>

#include "../core/one_thread.hpp"
#include "../nn/weights_use.hpp"
#include "../parallel/concepts.hpp"
#include "held_alone.hpp"

namespace skein::inline SKEIN_ABI::train {

/// Says, as long as it lives, that a model is in a training. Throws ArgumentError where it is in one already.
class ModelInFit {
 public:
  explicit ModelInFit(const void* model)
      : held_(model,
              "this model is in another training: ranks that are threads have a model each, made in the function that spawn() "
              "calls; and within a fit, as in a callback, none is begun or loaded") {}

 private:
  HeldAlone held_;
};

/// A call of a trainer by one thread. Throws ArgumentError where another is in one, and where another thread uses the weights.
/// What it gives to a device comes behind the calls before, of whichever thread. Use: nn::WeightsUse::Training or ::Pass.
template <class TrainStep, class Use = nn::WeightsUse::Pass> class CallOfTrainer {
 public:
  CallOfTrainer(OneThread& calls, const char* name, TrainStep& train_step)
      : alone_(calls, name, "give the other thread a Predictor of its own"), train_step_(train_step) {
    if constexpr (!parallel::SplitsModel<typename TrainStep::PolicyState>) use_.emplace(train_step.model().weights().use());
    if (train_step_.reserved()) train_step_.step_memory().take_over();
  }
  CallOfTrainer(const CallOfTrainer&) = delete;
  ~CallOfTrainer() {
    if (train_step_.reserved()) train_step_.step_memory().hand_over();
  }

 private:
  OneThread::Call alone_;
  std::optional<Use> use_;
  TrainStep& train_step_;
};

}  // namespace skein::inline SKEIN_ABI::train
