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
#include "training_file.hpp"
#include "preparation.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train::detail {

template <class Scalar> struct FitLoop<Scalar>::Forget {  // callbacks live as long as their fit, and so does the folder's lock
  FitLoop& loop;
  ~Forget() { loop.state_.forget_callbacks(), loop.kept_ = nullptr, loop.commits_ = nullptr, loop.work_ = nullptr; }
};

template <class Scalar>
History FitLoop<Scalar>::run(Training& training, data::DatasetView train, const FitOptions& options, KeptObjects& kept) {
  facts_ = training.facts();
  check_replica_options(facts_, options.check.replicas_every);
  check_fit_options(options);
  check_metrics(facts_, options.metrics);
  const Forget forget{*this};
  commits_ = options.checkpoint.folder.commits({.keep = options.checkpoint.keep, .async = options.checkpoint.async}, training);
  kept_ = &kept;
  const bool from_folder = commits_ && go_on(training, train, options.epochs, kept);
  if (from_folder && nothing_to_do(training, options)) return std::exchange(history(), History{});
  if (!from_folder && state_.goes_on()) check_epochs(position(), options.epochs);
  FitBatches<Scalar> batches(training, train, options, facts_, state_.seed_of(options.seed, facts_.seed));
  executor_options_ = {
      .execution = options.compute.execution, .threads = options.threads, .denormals = options.compute.denormals};
  batches.reserve(training, executor_options_);
  Work work(training, options, batches, facts_, position());
  const std::int64_t count = batches.training().steps();
  if (!state_.begin(batches.order(), count, work.callbacks, training)) training.forget_kept_weights();  // of another fit
  work.place_schedule();
  reserve_records(history(), options.epochs, options.record_steps ? count : 0);
  work.control.set_rate_factor(position().rate_factor);
  work_ = &work, predicted_ = 0;
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
  work.seen = work.training.steps();
  while (position().epoch < work.options.epochs && !work.control.stopping()) {
    work.callbacks.on_epoch_begin(epoch_number(), work.control);
    agree_on_control(work);
    if (work.control.stopping()) break;
    if (position().step < count) epoch(work);
    else end_loaded_epoch(work);
    if (work.options.checkpoint.every == 0 && position().epoch < work.options.epochs && !work.control.stopping())
      compare_and_commit(work);
  }
  return end(work);
}

/// Whether the training of a commit, with which this fit goes on, has had all its epochs, or was ended for good. Then it prints a
/// line about it, and the callbacks become those of the commit. One that was stopped at the end of its epochs is ended by a fit.
template <class Scalar> bool FitLoop<Scalar>::nothing_to_do(Training& training, const FitOptions& options) {
  if (!position().ended && position().epoch < options.epochs) return false;
  Progress(ProgressOptions{.rank = options.progress ? facts_.rank : 1}).line(commits_->nothing_to_do(position(), options.epochs));
  if (!position().fit_is_over()) return false;
  Callbacks callbacks(options.callbacks);
  state_.end_without_fit(callbacks, training);
  return true;
}

/// True: this fit goes on from the newest commit of the folder, which is further than a training that was loaded. Throws
/// ArgumentError, and changes nothing, where that has had more epochs than are asked for, or its samples were prepared otherwise.
template <class Scalar>
bool FitLoop<Scalar>::go_on(Training& training, const data::DatasetView& train, int epochs, KeptObjects& kept) {
  const auto check = [&](const TrainingPosition& there, const KeptObjects& beside) {
    if (!there.ended && there.epochs_begun() > epochs) refuse_fewer_epochs(commits_->nothing_to_do(there, epochs), there, epochs);
    check_kept_preparation(beside, train.origin(), train.normalization(), "fit, which goes on from the .checkpoint folder");
  };
  const auto found = commits_->go_on(state_.loaded() ? training.steps() : -1, state_.epochs_before(),
                                     state_.goes_on() ? position().first_step : training.steps(), check);
  if (!found) return false;
  std::swap(kept, found->records.kept);
  resume(training, std::move(found->records));
  return true;
}

template <class Scalar> void FitLoop<Scalar>::commit(Work& work) {
  if (!commits_) return;
  state_.keep_callbacks();
  commits_->commit({position_of_all(work.training), history(), state_.kept_callbacks(), *kept_, state_.callback_failure()});
}

/// The commit that is under way is agreed on first, so that it stays where ranks differ.
template <class Scalar> void FitLoop<Scalar>::compare_weights(Work& work, const std::string& when) {
  if (commits_) commits_->finish();
  work.training.compare_weights(when);
}

/// Each rank writes a share of the weights: where they differ, a commit would have weights that no rank has had. Weights that are
/// not finite would push good ones out of the folder.
template <class Scalar> void FitLoop<Scalar>::compare_and_commit(Work& work) {
  if (!commits_) return;
  work.judge.look_at_parts(epoch_number(), work.factor);
  if (facts_.ranks > 1 && facts_.same_weights == parallel::SameWeights::after_step)
    compare_weights(work, text("before the commit of step {}", work.training.steps()));
  commit(work);
}

template <class Scalar> TrainingPosition FitLoop<Scalar>::position_for_file(Training& training) {
  if (work_) agree_on_control(*work_);
  return position_of_all(training);
}

template <class Scalar> TrainingPosition FitLoop<Scalar>::position_of_all(Training& training) {
  TrainingPosition at = position();
  if (state_.within_epoch()) at.sums = training.totals();
  reduce_sums(at, training.facts(), training);
  return at;
}

template <class Scalar> void FitLoop<Scalar>::resume(Training& training, FileRecords&& records) {
  state_.resume(training.facts(), std::move(records)), same_at_ = -1;
}

template <class Scalar> History FitLoop<Scalar>::end(Work& work) {
  if (work.control.stopping() && work.control.reason().size() > 0)
    work.progress.line("stopped: " + std::string(work.control.reason()));
  position().running = position().epoch < work.options.epochs;  // stopped: load() and fit() go on
  state_.keep_callbacks();                                      // for a save() after the fit
  position().ended = work.control.finishing();
  const bool goes_on = !position().fit_is_over();
  if (position().step > 0) work.judge.look_at_parts(epoch_number(), work.factor);  // the end of an epoch has looked
  const bool same = facts_.same_weights == parallel::SameWeights::after_step;
  if (same) compare_weights(work, "at the end of fit");
  if (goes_on) commit(work);  // as the ranks are now: finish() makes weights of their own one, kept weights take their place
  work.training.finish(work.signals.ending());
  if (!same) compare_weights(work, "at the end of fit");
  const bool others = work.training.has_kept_weights();  // than were compared
  if (facts_.serves) (void)work.training.texts_of_all(others ? "kept" : "");
  if (others) work.training.give_back_weights();
  work.training.average_buffers();
  if (!goes_on && others) compare_and_commit(work);
  else if (!goes_on) commit(work);
  if (commits_) commits_->finish();
  same_at_ = work.training.steps();  // all ranks are here; what follows may fail on one
  History result = position().running ? history() : std::exchange(history(), History{});  // a stopped fit may be saved and go on
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
  ExecutorOptions memory = executor_options_;
  memory.capacity = std::max(loader.capacity(), training.capacity()), predicted_ = 0;
  training.reserve(memory);
  training.average_buffers();
  return evaluate_loader(training, facts_, loader, options.metrics);
}

template <class Scalar> void FitLoop<Scalar>::reserve_for_prediction(Training&& training, long n) {
  ExecutorOptions memory = executor_options_;
  memory.capacity = std::clamp(n, 1L, 256L);
  if (training.capacity() == predicted_ && memory.capacity > predicted_) training.reserve(memory), predicted_ = memory.capacity;
}

template <class Scalar> void FitLoop<Scalar>::epoch(Work& work) {
  Training& training = work.training;
  const std::int64_t number = position().base + position().epoch, count = work.batches.training().steps();
  if (position().step > 0) work.batches.training().seek({number, position().step});
  work.figures.begin_epoch(position().samples), work.factor = 1;
  int pending = 0;      // batches of the accumulation that have gone
  StepSamples waiting;  // their samples
  training.set_totals(position().sums), state_.enter_epoch();
  training.epoch_begins(number);
  for (const data::Batch<Scalar>& batch : work.batches.training().epoch(number)) {
    const optim::StepOptions step = work.step_options(batch, pending);
    training.step(batch, step);
    waiting.all += batch.global_count, waiting.own += batch.count;
    pending = step.update ? 0 : pending + 1;
    work.figures.count_step();
    if (!step.update) continue;
    position().step = batch.step + 1;  // who is saved after an exception makes the step with all of its batches
    const StepSamples samples = std::exchange(waiting, {});
    const bool made = !step.finite || work.judge.made(batch, epoch_number(), work.factor);
    left_out_ += made ? 0 : 1;
    if (!made) continue;
    if (work.records_steps()) work.recorded = training.sums();  // a device is waited for here: a callback may evaluate
    if (const std::int64_t n = training.steps(); n != work.seen) {
      position().samples += samples.all, work.figures.count_own(samples.own);
      work.callbacks.on_update(n);
    } else {
      work.judge.skipped();
    }
    if (after_step(work, samples)) break;
  }
  position().sums = training.totals();
  work.judge.look(position().sums, epoch_number(), work.factor);
  state_.leave_epoch();
  if (const std::string_view note = training.note(); !note.empty() && !std::exchange(noted_, true))  // once
    work.progress.line(std::string(note));
  if (position().step == count) end_epoch(work);  // else it was stopped within the epoch
}

/// Ends an epoch whose last step had been made when the training was saved.
template <class Scalar> void FitLoop<Scalar>::end_loaded_epoch(Work& work) {
  work.figures.begin_epoch(position().samples);
  work.factor_of_last_step();
  work.training.epoch_begins(position().base + position().epoch);
  end_epoch(work);
}

/// Validation, the record, callbacks.
template <class Scalar> void FitLoop<Scalar>::end_epoch(Work& work) {
  Training& training = work.training;
  const std::int64_t number = position().base + position().epoch;
  training.epoch_ends(number);
  // The position keeps this rank's own: what is saved after an exception of here adds them up itself.
  const nn::LossSums sums = facts_.local_sums ? sum_over_ranks(training, position().sums) : position().sums;
  work.judge.look(sums, epoch_number(), work.factor);
  work.judge.look_at_parts(epoch_number(), work.factor);
  work.judge.end_of_epoch(work.progress, position().samples == 0, sums);
  EpochRecord record = work.figures.epoch(position(), sums, work.factor);
  if (auto* const validation = work.batches.validation()) {
    training.average_buffers();
    record.validation = evaluate_loader(training, facts_, *validation, work.metrics);
    if (!record.validation.measured())  // the line of the epoch leaves it out
      work.progress.line(text("the validation of epoch {} has no loss: it is not a number, or no sample counts", epoch_number()));
  }
  record.seconds = work.figures.seconds_of_epoch();
  position().epoch += 1;
  position().step = 0;
  position().sums = {}, position().samples = 0;
  history().add(record);
  work.callbacks.on_epoch_end(history().last(), work.control);
  agree_on_control(work);
  work.progress.epoch(history().back(), epochs_in_all(position().base, work.options.epochs));
}

/// Records, callbacks, the progress line. True: stop here.
template <class Scalar> bool FitLoop<Scalar>::after_step(Work& work, const StepSamples& samples) {
  const std::int64_t made = work.training.steps(), before = std::exchange(work.seen, made);
  if (is_due(work.options.check.replicas_every, before, made)) work.training.compare_weights(text("after step {}", made));
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
