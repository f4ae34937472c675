// SPDX-License-Identifier: Apache-2.0
// What a fit under a policy with servers refuses.
#pragma once
#include "../core/error.hpp"
#include "options.hpp"

namespace skein::inline SKEIN_ABI::train {

/// Throws ArgumentError for what a fit with servers cannot have.
template <class TrainStep> void check_served(TrainStep& train_step, const FitOptions& options) {
  if (!options.checkpoint.folder.empty())
    throw ArgumentError(
        "fit: .checkpoint is not there under a ParameterServer, whose servers take no part in it: call trainer.save(path) "
        "after the fit");
  if (options.clip_norm > 0 && !TrainStep::PolicyState::serves_whole_steps)
    throw ArgumentError(
        "fit: .clip_norm needs the gradients of all ranks at once, which a parameter server waits for with Staleness<0>: take "
        "that, or leave it out");
  if (options.schedule.wants_lengths())
    throw ArgumentError("fit: servers make the updates and do not know how long an epoch is: give the .schedule counts of steps");
  if constexpr (TrainStep::Parts::Model::scales_loss)
    if (train_step.loss_scaler().active())
      throw ArgumentError(
          "fit: a parameter server does not know the loss scale of 16-bit models: take .step = {.loss_scaling = "
          "LossScaling::none()}");
}

namespace detail {
/// Throws ArgumentError where a training with servers is saved when its fit has ended and not returned, `at_end`: in an
/// on_fit_end. Servers, which give what they keep, have left the fit, or wait until the workers leave it.
inline void refuse_save_at_end(bool at_end) {
  if (at_end)
    throw ArgumentError(
        "save: in on_fit_end the servers of a ParameterServer have ended their fit, and run no callbacks: call "
        "trainer.save(path) after fit, on all ranks, or trainer.save_weights(path) here");
}
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::train
