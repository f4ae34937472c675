// SPDX-License-Identifier: Apache-2.0
// Options that a fit refuses beforehand: those that would do nothing, or harm, without a word.
#pragma once
#include <cstdint>
#include <string>

#include "../core/error.hpp"
#include "../core/text.hpp"
#include "../optim/step_checks.hpp"
#include "fit_facts.hpp"
#include "options.hpp"
#include "signal_watch.hpp"
#include "training_position.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train::detail {

/// Throws ArgumentError where weights differ between exchanges, and are to be compared there.
inline void check_replica_options(const FitFacts& facts, std::int64_t every) {
  if (every < 0) throw ArgumentError("fit: .check.replicas_every is a number of steps: 0 or more");
  if (every > 0 && facts.ranks > 1 && facts.same_weights != parallel::SameWeights::after_step)
    throw ArgumentError(
        "fit: .check.replicas_every is for policies whose ranks have the same weights after each step, as DataParallel's; "
        "this one's differ between exchanges: leave it out (at the end of fit they are compared in any case)");
}

/// Throws the ArgumentError of a fit that is asked for fewer epochs than its commit has had; `about` the commit.
[[noreturn]] inline void refuse_fewer_epochs(const std::string& about, const TrainingPosition& position, int epochs) {
  throw ArgumentError(
      text("fit: {}{}: its weights are not those of {} epochs; ask for more .epochs, give another "
           ".checkpoint.folder to begin anew, or load() the commit to use it as it is",
           about, position.step > 0 ? text(" and {} steps of the next", position.step) : std::string(), epochs));
}

/// Throws ArgumentError where a setting that is an enumeration has another number than its values.
inline void check_fit_enumerations(const FitOptions& o) {
  skein::detail::demand_value("fit", ".on_nan", o.on_nan, OnNan::go_on, "stop, skip or go_on");
  data::detail::demand_value("fit", ".loader.partition", o.loader.partition);
  data::detail::demand_value("fit", ".loader.last", o.loader.last);
  data::detail::demand_value("fit", ".loader.prefetch", o.loader.prefetch);
  nn::detail::demand_value("fit", ".compute.execution", o.compute.execution);
  nn::detail::demand_value("fit", ".compute.denormals", o.compute.denormals);
}

/// Throws ArgumentError for options that would do nothing, or harm, without a word.
inline void check_fit_options(const FitOptions& options) {
  optim::check_clip_norm("fit", options.clip_norm);
  nn::check_threads("fit", options.threads);
  check_interrupt(options.interrupt);
  check_fit_enumerations(options);
  if (!options.metrics.empty() && !options.validate)
    throw ArgumentError(
        "fit: .metrics are of the validation, and no .validate set is given: give one (the training set too can be it), or ask "
        "afterwards by trainer.evaluate(data, {.metrics = ...})");
  const FitCheckpoint &o = options.checkpoint, none{};
  if (o.folder.empty() && (o.every != none.every || o.keep != none.keep || o.async))
    throw ArgumentError("fit: .checkpoint has no .folder, so that nothing would be saved: .checkpoint = {.folder = \"run\"}");
  if (o.every < 0)
    throw ArgumentError(text("fit: .checkpoint.every is {}: give 1 or more steps; 0: at each end of an epoch", o.every));
  if (o.keep < 2)
    throw ArgumentError(
        text("fit: .checkpoint.keep is {}: keep 2 or more, so that there is one before the last, which may be damaged", o.keep));
}

/// What the options say of every step is the step's from here on. Throws ArgumentError for what would do nothing, or act twice.
template <class TrainStep> void take_step_options(TrainStep& step, const FitOptions& options) {
  (void)optim::clip_norm_of(step.optimizer().optimizer(), options.clip_norm);  // not twice
  if (options.step.accumulate < 1) throw ArgumentError("fit: .step.accumulate must be at least 1 batch a step");
  if (!options.step.loss_scaling) return;
  if constexpr (std::decay_t<decltype(step.model())>::scales_loss) step.set_loss_scaling(*options.step.loss_scaling);
  else
    throw ArgumentError(
        "fit: .step.loss_scaling is for models whose activations are stored in 16 bits, as those of precision::fp16: leave it "
        "out");
}

}  // namespace skein::inline SKEIN_ABI::train::detail

SKEIN_END_COLD
