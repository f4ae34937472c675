// SPDX-License-Identifier: Apache-2.0
// The bodies of fit_loop.hpp: of both scalars that there are in the library.
#pragma once
#include <algorithm>
#include <utility>

#include "../core/error.hpp"
#include "agree_on_control.hpp"
#include "check_fit.hpp"
#include "check_metrics.hpp"
#include "evaluate_loader.hpp"
#include "fit_loop.hpp"
#include "fit_work.hpp"
#include "model_file.hpp"
#include "preparation.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train::detail {

template <class Scalar> struct FitLoop<Scalar>::Forget {  // callbacks live as long as their fit, and so does the folder's lock
  FitLoop& loop;
  ~Forget() { loop.state_.forget_callbacks(), loop.kept_ = nullptr, loop.commits_ = nullptr, loop.work_ = nullptr; }
};

template <class Scalar>
History FitLoop<Scalar>::run(Steps& steps, data::DatasetView train, const FitOptions& options, KeptObjects& kept) {
  facts_ = steps.facts();
  check_replica_options(facts_, options.check.replicas_every);
  check_fit_options(options);
  check_metrics(facts_, options.metrics);
  const Forget forget{*this};
  commits_ = options.checkpoint.folder.commits({.keep = options.checkpoint.keep, .async = options.checkpoint.async}, steps);
  kept_ = &kept;
  const bool from_folder = commits_ && go_on(steps, train, options.epochs, kept);
  if (from_folder && nothing_to_do(options)) return std::exchange(history(), History{});
  if (!from_folder && state_.goes_on()) check_epochs(place(), options.epochs);
  FitBatches<Scalar> batches(steps, train, options, facts_, state_.seed_of(options.seed, facts_.seed));
  memory_ = {.execution = options.compute.execution, .threads = options.threads, .denormals = options.compute.denormals};
  batches.reserve(steps, memory_);
  Work work(steps, options, batches, facts_, place());
  const std::int64_t count = batches.training().steps();
  state_.begin(batches.order(), count, work.callbacks, steps);
  work.place_schedule();
  predicted_ = 0;
  reserve_records(history(), options.epochs, options.record_steps ? count : 0);
  work.control.set_rate_factor(place().rate_factor);
  work_ = &work;
  try {
    return epochs(work, count);
  } catch (...) {  // a file that is saved now has the callbacks as they are
    take_control_alone(work);
    state_.keep_callbacks();
    throw;
  }
}

/// Runs the epochs that are left, of `count` batches each.
template <class Scalar> History FitLoop<Scalar>::epochs(Work& work, std::int64_t count) {
  agree_on_callbacks(work);
  work.callbacks.on_fit_begin(work.control);
  agree_on_control(work);
  const double now = seconds_now();
  work.signals.begin(now), work.figures.begin(now);
  work.seen = work.steps.steps();
  while (place().epoch < work.options.epochs && !work.control.stopping()) {
    work.callbacks.on_epoch_begin(epoch_number(), work.control);
    agree_on_control(work);
    if (work.control.stopping()) break;
    if (place().step < count) epoch(work);
    else end_loaded_epoch(work);
    if (work.options.checkpoint.every == 0 && place().epoch < work.options.epochs && !work.control.stopping())
      compare_and_commit(work);
  }
  return end(work);
}

/// Whether the training of a commit, with which this fit goes on, has had all its epochs, or was ended for good. Then it prints a
/// line about it, and the callbacks become those of the commit. One that was stopped at the end of its epochs is ended by a fit.
template <class Scalar> bool FitLoop<Scalar>::nothing_to_do(const FitOptions& options) {
  if (!place().ended && place().epoch < options.epochs) return false;
  Progress(ProgressOptions{.rank = options.progress ? facts_.rank : 1}).line(commits_->nothing_to_do(place(), options.epochs));
  if (place().running && !place().ended) return false;
  Callbacks callbacks(options.callbacks);
  state_.end_without_fit(callbacks, facts_.rank);
  return true;
}

/// True: this fit goes on from the newest commit of the folder, which is further than a training that was loaded. Throws
/// ArgumentError, and changes nothing, where that has had more epochs than are asked for, or its samples were prepared otherwise.
template <class Scalar> bool FitLoop<Scalar>::go_on(Steps& steps, const data::DatasetView& train, int epochs, KeptObjects& kept) {
  const auto check = [&](const TrainingPosition& there, const KeptObjects& beside) {
    if (!there.ended && there.epoch + (there.step > 0 ? 1 : 0) > epochs)
      refuse_fewer_epochs(commits_->nothing_to_do(there, epochs), there, epochs);
    check_kept_preparation(beside, train.origin(), train.normalization(), "fit, which goes on from the .checkpoint folder");
  };
  const auto found = commits_->go_on(state_.loaded() ? steps.steps() : -1, state_.epochs_before(),
                                     state_.goes_on() ? place().first_step : steps.steps(), check);
  if (!found) return false;
  std::swap(kept, found->records.kept);
  resume(steps, std::move(found->records));
  return true;
}

template <class Scalar> void FitLoop<Scalar>::commit(Work& work) {
  if (!commits_) return;
  state_.keep_callbacks();
  commits_->commit({position_of_all(work.steps), history(), state_.kept_callbacks(), *kept_, state_.callback_failure()});
}

/// The commit that is under way is agreed on first, so that it stays where ranks differ.
template <class Scalar> void FitLoop<Scalar>::compare_weights(Work& work, const std::string& when) {
  if (commits_) commits_->finish();
  work.steps.compare_weights(when);
}

/// Each rank writes a share of the weights: where they differ, a commit would have weights that no rank has had. Weights that are
/// not finite would push good ones out of the folder.
template <class Scalar> void FitLoop<Scalar>::compare_and_commit(Work& work) {
  if (!commits_) return;
  work.judge.look_at_parts(epoch_number(), work.factor);
  if (facts_.ranks > 1 && facts_.same_weights == parallel::SameWeights::after_step)
    compare_weights(work, text("before the commit of step {}", work.steps.steps()));
  commit(work);
}

template <class Scalar> TrainingPosition FitLoop<Scalar>::position_for_file(Steps& steps) {
  if (work_) agree_on_control(*work_);
  return position_of_all(steps);
}

template <class Scalar> TrainingPosition FitLoop<Scalar>::position_of_all(Steps& steps) {
  TrainingPosition at = place();
  if (state_.within_epoch()) at.sums = steps.totals();
  reduce_sums(at, steps.facts(), steps);
  return at;
}

template <class Scalar> void FitLoop<Scalar>::resume(Steps& steps, FileRecords&& records) {
  state_.resume(steps.facts(), std::move(records));
}

template <class Scalar> History FitLoop<Scalar>::end(Work& work) {
  if (work.control.stopping() && work.control.reason().size() > 0)
    work.progress.line("stopped: " + std::string(work.control.reason()));
  place().running = place().epoch < work.options.epochs;  // stopped: load() and fit() go on
  state_.keep_callbacks();                                // for a save() after the fit
  place().ended = work.control.finishing();
  const bool goes_on = place().running && !place().ended;
  if (place().step > 0) work.judge.look_at_parts(epoch_number(), work.factor);  // the end of an epoch has looked
  const bool same = facts_.same_weights == parallel::SameWeights::after_step;
  if (same) compare_weights(work, "at the end of fit");
  if (goes_on) commit(work);  // as the ranks are now: finish() makes weights of their own one, kept weights take their place
  work.steps.finish(work.signals.ending());
  if (!same) compare_weights(work, "at the end of fit");
  const bool others = work.steps.has_kept_weights();  // than were compared
  if (facts_.serves) (void)work.steps.texts_of_all(others ? "kept" : "");
  if (others) work.steps.give_back_weights();
  work.steps.average_buffers();
  if (!goes_on && others) compare_and_commit(work);
  else if (!goes_on) commit(work);
  if (commits_) commits_->finish();
  History result = place().running ? history() : std::exchange(history(), History{});  // a stopped fit may be saved and go on
  work_ = nullptr;  // what these callbacks save is of a fit that has ended: there is nothing to agree on
  work.callbacks.on_fit_end(result);
  if (work.signals.ending() != 0) leave_by_signal(work);
  return result;
}

template <class Scalar>
Scores FitLoop<Scalar>::evaluate(EvaluatedTraining<Scalar>& training, data::DatasetView data, EvaluateOptions& options) {
  facts_ = training.facts();
  check_metrics(facts_, options.metrics);
  if (options.batch < 0)
    throw ArgumentError(text("evaluate: .batch is {}: give 1 or more samples; 0: 256 a rank", options.batch));
  const long batch = options.batch > 0 ? options.batch : 256L * facts_.ranks;
  data::Loader<Scalar> loader(data, evaluation_options(facts_, batch, "the evaluated data set"));
  ExecutorOptions memory = memory_;
  memory.capacity = std::max(loader.capacity(), training.capacity()), predicted_ = 0;
  training.reserve(memory);
  training.average_buffers();
  return evaluate_loader(training, facts_, loader, options.metrics);
}

template <class Scalar> void FitLoop<Scalar>::reserve_for_prediction(Steps&& steps, long n) {
  ExecutorOptions memory = memory_;
  memory.capacity = std::clamp(n, 1L, 256L);
  if (steps.capacity() == predicted_ && memory.capacity > predicted_) steps.reserve(memory), predicted_ = memory.capacity;
}

template <class Scalar> void FitLoop<Scalar>::epoch(Work& work) {
  Steps& steps = work.steps;
  const std::int64_t number = place().base + place().epoch, count = work.batches.training().steps();
  if (place().step > 0) work.batches.training().seek({number, place().step});
  work.figures.begin_epoch(place().samples), work.factor = 1;
  int pending = 0;      // batches of the accumulation that have gone
  StepSamples waiting;  // their samples
  steps.set_totals(place().sums), state_.enter_epoch();
  steps.epoch_begins(number);
  for (const data::Batch<Scalar>& batch : work.batches.training().epoch(number)) {
    const optim::StepOptions step = work.step_options(batch, pending);
    steps.step(batch, step);
    waiting.all += batch.global_count, waiting.own += batch.count;
    pending = step.update ? 0 : pending + 1;
    work.figures.count_step();
    if (!step.update) continue;
    place().step = batch.step + 1;  // who is saved after an exception makes the step with all of its batches
    const StepSamples samples = std::exchange(waiting, {});
    const bool made = !step.finite || work.judge.made(batch, epoch_number(), work.factor);
    left_out_ += made ? 0 : 1;
    if (!made) continue;
    if (work.records_steps()) work.recorded = steps.sums();  // a device is waited for here: a callback may evaluate
    if (const std::int64_t n = steps.steps(); n != work.seen) {
      place().samples += samples.all, work.figures.count_own(samples.own);
      work.callbacks.on_update(n);
    } else {
      work.judge.skipped();
    }
    if (after_step(work, samples)) break;
  }
  place().sums = steps.totals();
  work.judge.look(place().sums, epoch_number(), work.factor);
  state_.leave_epoch();
  if (const std::string_view note = steps.note(); !note.empty() && !std::exchange(noted_, true))  // once
    work.progress.line(std::string(note));
  if (place().step == count) end_epoch(work);  // else it was stopped within the epoch
}

/// Ends an epoch whose last step had been made when the training was saved.
template <class Scalar> void FitLoop<Scalar>::end_loaded_epoch(Work& work) {
  work.figures.begin_epoch(place().samples);
  work.factor_of_step(1);
  work.steps.epoch_begins(place().base + place().epoch);
  end_epoch(work);
}

/// Validation, the record, callbacks.
template <class Scalar> void FitLoop<Scalar>::end_epoch(Work& work) {
  Steps& steps = work.steps;
  const std::int64_t number = place().base + place().epoch;
  steps.epoch_ends(number);
  // The position keeps this rank's own: what is saved after an exception of here adds them up itself.
  const nn::LossSums sums = facts_.local_sums ? sum_over_ranks(steps, place().sums) : place().sums;
  work.judge.look(sums, epoch_number(), work.factor);
  work.judge.look_at_parts(epoch_number(), work.factor);
  work.judge.end_of_epoch(work.progress, place().samples == 0, sums);
  EpochRecord record = work.figures.epoch(place(), sums, work.factor);
  if (auto* const validation = work.batches.validation()) {
    steps.average_buffers();
    record.validation = evaluate_loader(steps, facts_, *validation, work.metrics);
    if (!record.validation.measured())  // the line of the epoch leaves it out
      work.progress.line(text("the validation of epoch {} has no loss: it is not a number, or no sample counts", epoch_number()));
  }
  record.seconds = work.figures.seconds_of_epoch();
  place().epoch += 1;
  place().step = 0;
  place().sums = {};
  place().samples = 0;
  history().add(record);
  work.callbacks.on_epoch_end(history().last(), work.control);
  agree_on_control(work);
  work.progress.epoch(history().back(), epochs_in_all(place().base, work.options.epochs));
}

/// Records, callbacks, the progress line. True: stop here.
template <class Scalar> bool FitLoop<Scalar>::after_step(Work& work, const StepSamples& samples) {
  const std::int64_t made = work.steps.steps(), before = std::exchange(work.seen, made);
  if (is_due(work.options.check.replicas_every, before, made)) work.steps.compare_weights(text("after step {}", made));
  const bool wanted = work.records_steps();
  if (wanted || work.options.progress) {
    if (wanted) record_step(work, samples);
    const double now = wanted ? work.figures.last() : seconds_now();
    if (work.options.progress && work.progress.due(now)) work.show(now);
    if (work.control.stopping()) return true;
  }
  if (commits_ && (facts_.ranks == 1 || facts_.in_step)) commits_->after_step();
  look_for_signal(work);
  if (work.control.stopping()) return true;
  if (is_due(work.options.checkpoint.every, before, made)) compare_and_commit(work);
  return false;
}

template <class Scalar> void FitLoop<Scalar>::record_step(Work& work, const StepSamples& samples) {
  if (!facts_.host) work.judge.look(work.recorded, epoch_number(), work.factor);
  const StepRecord record = work.figures.step(work.recorded, samples, epoch_number(), work.factor);
  if (work.options.record_steps) history().add(record);
  if (work.steps_wanted) {
    work.callbacks.on_step_end(record, work.control);
    agree_on_control(work);
  }
}

#if SKEIN_COMPILED
template class FitLoop<float>;
template class FitLoop<double>;
#endif

}  // namespace skein::inline SKEIN_ABI::train::detail

SKEIN_END_COLD
