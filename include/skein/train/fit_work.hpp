// SPDX-License-Identifier: Apache-2.0
// What one call of fit works with, from its first step to its last: the options, the batches, callbacks, records, the rate. What
// stays between two fits is FitState's.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "callback.hpp"
#include "check_fit.hpp"
#include "check_metrics.hpp"
#include "check_schedule.hpp"
#include "fit_batches.hpp"
#include "fit_control.hpp"
#include "fit_figures.hpp"
#include "fit_signals.hpp"
#include "loss_judge.hpp"
#include "progress.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train::detail {

/// Optimizer steps of an epoch; with `from`, those of its batches from there on.
template <class Scalar> std::int64_t updates_of_epoch(FittedTraining<Scalar>& training, const data::Loader<Scalar>& loader,
                                                      int accumulate, std::int64_t from = 0) {
  const std::int64_t batches = loader.steps() - from, each = training.updates_of(loader.batch());
  if (each == 1 || batches == 0) return (batches + accumulate - 1) / accumulate;
  return (batches - 1) * each + training.updates_of(loader.share(loader.steps() - 1).global_count);
}

/// Room beforehand, so that a fit of usual length allocates nothing for them: one whose .epochs are but a bound grows as it goes.
inline void reserve_records(History& history, std::int64_t epochs, std::int64_t steps_of_epoch) {
  const auto room = [](std::size_t there, std::int64_t more) {
    constexpr std::int64_t most = 100'000;  // some 15 MB
    return there + static_cast<std::size_t>(more < most ? more : most);
  };
  history.reserve(room(history.size(), epochs), steps_of_epoch > 0 ? room(history.steps().size(), epochs * steps_of_epoch) : 0);
}

/// A multiple of `every` is among the steps behind `before`, of which there may be several: PipeDream makes one a micro-batch.
inline bool is_due(std::int64_t every, std::int64_t before, std::int64_t now) {
  return every > 0 && now / every != before / every;
}

/// What one fit on one rank works with. Whatever it refers to outlives it.
template <class Scalar> struct FitWork {
  FitWork(FittedTraining<Scalar>& asked, const FitOptions& o, FitBatches<Scalar>& all, const FitFacts& known,
          TrainingPosition& at)
      : training(asked), options(o), batches(all), facts(known), position(at), callbacks(o.callbacks), metrics(o.metrics),
        signals(o.interrupt, known, callbacks.wants_steps()), progress(ProgressOptions{.rank = o.progress ? known.rank : 1}),
        judge(asked, known, o), figures(asked, known) {
    const std::int64_t count = updates_of_epoch(asked, all.training(), o.step.accumulate);
    schedule = o.schedule.bound({.steps = o.epochs * count, .steps_per_epoch = count});
    callbacks.check(what_is_measured(known, all.validation() != nullptr, metrics));
    check_rate(asked.rate());
    check_schedule(schedule, o.epochs * count, count);
  }

  /// A training that was loaded has begun to go on, or another one. Where its epochs had another number of steps, a schedule in
  /// epochs or shares of the fit goes on at the same place of its epoch.
  void place_schedule() {
    const int each = options.step.accumulate;
    const std::int64_t before = position.updates_of_epoch, now = updates_of_epoch(training, batches.training(), each);
    position.updates_of_epoch = now;
    if (before == 0 || before == now) return;  // steps that were skipped stay so
    const std::int64_t behind = (position.epoch + 1) * now - updates_of_epoch(training, batches.training(), each, position.step);
    position.schedule_shift = behind - (training.steps() - position.first_step);
  }
  /// The factor of the rate in the step that comes, or in one before it. Noted. A schedule without such lengths counts the steps
  /// themselves.
  double factor_of_step(std::int64_t before = 0) {
    const std::int64_t ahead = options.schedule.wants_lengths() ? position.schedule_shift : 0;
    const std::int64_t step = training.steps() - position.first_step + ahead - before;
    return factor = factor_of(schedule, std::max<std::int64_t>(0, step)) * position.rate_factor;
  }
  /// The factor of the rate in the step that an epoch has ended with, which may have made several updates. Noted.
  double factor_of_last_step() {
    const data::Loader<Scalar>& loader = batches.training();
    return factor_of_step(updates_of_epoch(training, loader, options.step.accumulate, loader.steps() - 1));
  }
  /// The options of the step of a batch before which so many batches of that step have gone. Notes the factor of the rate.
  optim::StepOptions step_options(const data::Batch<Scalar>& batch, int pending) {
    const std::int64_t count = batches.training().steps(), number = (position.base + position.epoch) * count + batch.step;
    optim::StepOptions step;
    step.lr_factor = factor_of_step();
    step.clip_norm = options.clip_norm;
    step.accumulate = pending > 0;
    step.update = pending + 1 == options.step.accumulate || batch.step + 1 == count;
    for (std::int64_t b = batch.step; pending == 0 && b < std::min(count, batch.step + options.step.accumulate); ++b)
      step.of_samples += b == batch.step ? batch.global_count : batches.training().share(b).global_count;
    step.key = random_key(batches.seed().value, 0x73746570ull + static_cast<std::uint64_t>(number));  // "step"
    step.graph = options.compute.graph;
    step.finite = judge.judges_step(pending == 0);
    step.stops = true;  // steps are skipped only where all ranks see all sums
    return step;
  }

  /// The line of the progress, of the epoch so far.
  void show(double now) {
    position.sums = training.totals();
    judge.look(position.sums, static_cast<int>(position.base + position.epoch) + 1, factor);
    progress.update(figures.progress(position, batches.training().steps(), options.epochs, now), now);
  }
  /// Somebody reads the record of each step.
  bool records_steps() const { return options.record_steps || steps_wanted; }

  FittedTraining<Scalar>& training;
  const FitOptions& options;
  FitBatches<Scalar>& batches;
  const FitFacts& facts;
  TrainingPosition& position;  // the state's
  Callbacks callbacks;
  std::vector<AnyMetric> metrics;
  FitSignals signals;
  FitControl control;
  Progress progress;
  LossJudge<Scalar> judge;
  FitFigures<Scalar> figures;
  optim::Schedule schedule{};  // with the lengths of this fit
  double factor = 1;           // of the rate
  std::int64_t seen = 0;       // steps of the optimizer when it was last looked whether something is due
  nn::LossSums recorded{};     // of the step that is to be recorded
  bool steps_wanted = false;   // by a callback
};

}  // namespace skein::inline SKEIN_ABI::train::detail

SKEIN_END_COLD
