// SPDX-License-Identifier: Apache-2.0
// The bodies of fit_loop.hpp: of both scalars that there are in the library.
#pragma once
#include <algorithm>
#include <cmath>
#include <utility>

#include "../core/error.hpp"
#include "../optim/transform/transform.hpp"
#include "archive.hpp"
#include "check_metrics.hpp"
#include "check_schedule.hpp"
#include "evaluate_loader.hpp"
#include "fit_loop.hpp"
#include "fit_signals.hpp"
#include "loss_judge.hpp"
#include "model_file.hpp"
#include "preparation.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train::detail {

/// Of one fit.
template <class Scalar> struct FitLoop<Scalar>::Work {
  Work(Steps& asked, const FitOptions& o, data::Loader<Scalar>& train, data::Loader<Scalar>* validate, const FitFacts& facts)
      : steps(asked), options(o), loader(train), validation(validate), callbacks(o.callbacks), metrics(o.metrics),
        signals(o.interrupt, facts, callbacks.wants_steps()), progress(ProgressOptions{.rank = o.progress ? facts.rank : 1}),
        judge(asked, facts, o) {
    const std::int64_t count = (train.steps() + o.step.accumulate - 1) / o.step.accumulate;
    schedule = o.schedule.bound({.steps = o.epochs * count, .steps_per_epoch = count});
    check_rate(asked.rate());
    check_schedule(schedule, o.epochs * count, count);
  }
  Steps& steps;
  const FitOptions& options;
  data::Loader<Scalar>& loader;
  data::Loader<Scalar>* validation;
  Callbacks callbacks;
  std::vector<AnyMetric> metrics;
  FitSignals signals;
  FitControl control;
  Progress progress;
  LossJudge<Scalar> judge;
  optim::Schedule schedule{};     // with the lengths of this fit
  double start = 0, last = 0;     // seconds
  double begin = 0, exposed = 0;  // of the epoch
  double factor = 1;              // of the rate
  std::int64_t steps_done = 0;
  std::int64_t seen = 0;  // steps of the optimizer when it was last looked whether something is due
  bool steps_wanted = false;
};

template <class Scalar> struct FitLoop<Scalar>::Forget {  // callbacks live as long as their fit, and so does the folder's lock
  FitLoop& loop;
  ~Forget() { loop.callbacks_ = nullptr, loop.kept_ = nullptr, loop.commits_ = nullptr; }
};

/// Throws ArgumentError where weights differ between exchanges, and are to be compared there.
inline void check_replica_options(const FitFacts& facts, std::int64_t every) {
  if (every < 0) throw ArgumentError("fit: .check.replicas_every is a number of steps: 0 or more");
  if (every > 0 && facts.ranks > 1 && facts.same_weights != parallel::SameWeights::after_step)
    throw ArgumentError(
        "fit: .check.replicas_every is for policies whose ranks have the same weights after each step, as DataParallel's; "
        "this one's differ between exchanges: leave it out (at the end of fit they are compared in any case)");
}

/// Throws ArgumentError for options that would do nothing, or harm, without a word.
inline void check_options(const FitOptions& options) {
  optim::check_clip_norm("fit", options.clip_norm);
  nn::check_threads("fit", options.threads);
  check_interrupt(options.interrupt);
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
/// Throws ArgumentError where an epoch has no step.
inline void check_steps(std::int64_t steps, long batch, std::int64_t samples) {
  if (steps == 0)
    throw ArgumentError(
        text("fit: an epoch has no step: .loader = {.last = LastBatch::drop} leaves out batches that are not full, and "
             "a batch of {} over all ranks is more than the {} samples of the training data set",
             batch, samples));
}
/// The factor of the rate in a step, from 0. Throws ArgumentError for one that is none.
inline double factor_of(const optim::Schedule& schedule, std::int64_t step) {
  const auto factor = static_cast<double>(schedule(step));
  if (!(factor >= 0 && factor <= 3.4e38)) [[unlikely]]
    throw ArgumentError(
        text("fit: the .schedule returns {} for step {}: a factor of the rate is finite and not negative", factor, step + 1));
  return factor;
}

template <class Scalar>
History FitLoop<Scalar>::run(Steps& steps, data::DatasetView train, const FitOptions& options, KeptObjects& kept) {
  facts_ = steps.facts();
  check_replica_options(facts_, options.check.replicas_every);
  check_options(options);
  check_metrics(facts_, options.metrics);
  const Forget forget{*this};
  commits_ = options.checkpoint.folder.commits({.keep = options.checkpoint.keep, .async = options.checkpoint.async}, steps);
  kept_ = &kept;
  if (commits_) go_on(steps, train, kept);
  if (nothing_to_do(options)) return std::exchange(history_, History{});
  seed_ = seed_of(options, facts_.seed);
  data::Loader<Scalar> loader(train, loader_options(steps, train, options));
  check_steps(loader.steps(), loader.batch(), train.size());
  std::unique_ptr<data::Loader<Scalar>> validation;
  if (options.validate)
    validation = std::make_unique<data::Loader<Scalar>>(options.validate, validation_options(loader.batch(), options));
  reserve(steps, loader, validation.get(), options);
  Work work(steps, options, loader, validation.get(), facts_);
  begin(steps, loader, options);
  begin_callbacks(work);
  const auto epochs = static_cast<std::size_t>(options.epochs);
  history_.reserve(history_.size() + epochs,
                   options.record_steps ? history_.steps().size() + epochs * static_cast<std::size_t>(loader.steps()) : 0);
  work.control.set_rate_factor(place_.rate_factor);
  work.callbacks.on_fit_begin(work.control);
  agree(work);
  double wanted[1] = {work.callbacks.wants_steps() ? 1.0 : 0.0};  // by any rank: all must agree after each step then
  steps.reduce(wanted);
  work.steps_wanted = wanted[0] > 0;
  work.signals.begin(work.start = work.last = seconds_now());
  work.seen = steps.steps();
  while (place_.epoch < options.epochs && !work.control.stopping()) {
    work.callbacks.on_epoch_begin(epoch_number(), work.control);
    agree(work);
    if (place_.step < loader.steps()) epoch(work);
    else end_loaded_epoch(work);
    if (options.checkpoint.every == 0 && place_.epoch < options.epochs && !work.control.stopping()) compare_and_commit(work);
  }
  return end(work);
}

template <class Scalar> void FitLoop<Scalar>::load_callbacks(Callbacks& callbacks) const {
  from_bytes(byte_span(callback_state_), callbacks, "the callbacks of the loaded training");
}

/// They go on where those of a loaded training were.
template <class Scalar> void FitLoop<Scalar>::begin_callbacks(Work& work) {
  if (!callback_state_.empty() && continues_) {
    if (work.callbacks.size() > 0) load_callbacks(work.callbacks);
    else if (const auto saved = Callbacks::saved_in(byte_span(callback_state_)); saved > 0 && facts_.rank == 0)
      say_no_callbacks(saved);
  }
  callback_state_.clear();
  callbacks_ = &work.callbacks;
}

/// Of a commit whose training has had all its epochs, or was ended for good. With a line about it; the callbacks are those of the
/// commit. Throws ArgumentError where it has had more.
template <class Scalar> bool FitLoop<Scalar>::nothing_to_do(const FitOptions& options) {
  if (!std::exchange(from_commit_, false) || !(place_.ended || place_.epoch >= options.epochs)) return false;
  const std::string about = commits_->nothing_to_do(place_, options.epochs);
  if (place_.epoch + (place_.step > 0 ? 1 : 0) > options.epochs && !place_.ended)
    throw ArgumentError(
        text("fit: {}{}: its weights are not those of {} epochs; ask for more .epochs, give another "
             ".checkpoint.folder to begin anew, or load() the commit to use it as it is",
             about, place_.step > 0 ? text(" and {} steps of the next", place_.step) : std::string(), options.epochs));
  Progress(ProgressOptions{.rank = options.progress ? facts_.rank : 1}).line(about);
  Callbacks callbacks(options.callbacks);
  if (!callback_state_.empty() && callbacks.size() > 0) load_callbacks(callbacks);
  callback_state_.clear();
  resumed_ = place_.running = false;
  return true;
}

/// From the newest commit of the folder, if that is further than a training that was loaded.
template <class Scalar> void FitLoop<Scalar>::go_on(Steps& steps, const data::DatasetView& train, KeptObjects& kept) {
  const bool loaded = resumed_ && goes_on();
  const std::int64_t base = loaded ? place_.base : place_.base + place_.epoch + (place_.step > 0 ? 1 : 0);
  const auto found = commits_->go_on(resumed_ ? steps.steps() : -1, base, loaded ? place_.first_step : steps.steps());
  if (!found) return;
  FileRecords& records = found->records;
  std::swap(kept, records.kept);
  resume(steps, std::move(records));
  check_kept_preparation(kept, train.origin(), train.normalization(), "fit, which goes on from the .checkpoint folder");
  from_commit_ = true;
}

template <class Scalar> void FitLoop<Scalar>::commit(Work& work) {
  if (!commits_) return;
  keep_callbacks();
  commits_->commit({position_for_file(work.steps), history_, callback_state_, *kept_, callback_failure_});
}

/// The commit that is under way is agreed on first, so that it stays where ranks differ.
template <class Scalar> void FitLoop<Scalar>::compare_weights(Work& work, const std::string& when) {
  if (commits_) commits_->finish();
  work.steps.compare_weights(when);
}

/// Each rank writes a share of the weights: where they differ, a commit would have weights that no rank has had.
template <class Scalar> void FitLoop<Scalar>::compare_and_commit(Work& work) {
  if (!commits_) return;
  if (facts_.ranks > 1 && facts_.same_weights == parallel::SameWeights::after_step)
    compare_weights(work, text("before the commit of step {}", work.steps.steps()));
  commit(work);
}

template <class Scalar> TrainingPosition FitLoop<Scalar>::position_for_file(Steps& steps) const {
  TrainingPosition at = place_;
  if (fitting_) at.sums = steps.totals();
  at.sums_of_ranks.clear();
  const FitFacts facts = steps.facts();
  if (!facts.local_sums) return at;
  at.sums_of_ranks.resize(3 * static_cast<std::size_t>(facts.ranks));
  if (facts.rank < facts.ranks) {  // a rank that serves has none
    double* const own = at.sums_of_ranks.data() + 3 * facts.rank;
    own[0] = at.sums.loss, own[1] = at.sums.weight, own[2] = at.sums.correct;
  }
  steps.reduce(at.sums_of_ranks);  // with zeros: exact
  at.sums = sum_over_ranks(steps, at.sums);
  return at;
}

template <class Scalar> History FitLoop<Scalar>::end(Work& work) {
  if (work.control.stopping() && work.control.reason().size() > 0)
    work.progress.line("stopped: " + std::string(work.control.reason()));
  place_.running = place_.epoch < work.options.epochs;  // stopped: load() and fit() go on
  if (place_.running) keep_callbacks();                 // for a save() after the stop
  place_.ended = work.control.finishing();
  const bool goes_on = place_.running && !place_.ended;
  const bool same = facts_.same_weights == parallel::SameWeights::after_step;
  if (same) compare_weights(work, "at the end of fit");
  if (goes_on) commit(work);  // as the ranks are now: finish() makes weights of their own one, kept weights take their place
  work.steps.finish(work.signals.ending());
  if (!same) compare_weights(work, "at the end of fit");
  const bool others = work.steps.has_kept_weights();  // than were compared
  if (others) work.steps.give_back_weights();
  work.steps.average_buffers();
  if (!goes_on && others) compare_and_commit(work);
  else if (!goes_on) commit(work);
  if (commits_) commits_->finish();
  History result = place_.running ? history_ : std::exchange(history_, History{});  // a stopped fit may be saved and go on
  work.callbacks.on_fit_end(result);
  if (work.signals.ending() != 0) leave(work);
  return result;
}

/// All ranks throw after what all have done together.
template <class Scalar> void FitLoop<Scalar>::leave(Work& work) {
  (void)work.steps.texts_of_all({});  // ranks that serve take part
  const std::string& folder = work.options.checkpoint.folder.path();
  std::string what = text("fit: {} ended it after step {}; ", name_of_signal(work.signals.ending()), work.steps.steps());
  if (facts_.serves) what += "nothing is saved: a ParameterServer has no commits";
  else if (folder.empty())
    what += "nothing is saved: with .checkpoint = {.folder = \"run\"} the next start would go on from there";
  else what += text("the training is saved in {}, and goes on from there when the program is started again", folder);
  throw Interrupted(work.signals.ending(), what);
}

template <class Scalar> Scores FitLoop<Scalar>::evaluate(Steps& steps, data::DatasetView data, EvaluateOptions& options) {
  facts_ = steps.facts();
  check_metrics(facts_, options.metrics);
  if (options.batch < 0)
    throw ArgumentError(text("evaluate: .batch is {}: give 1 or more samples; 0: 256 a rank", options.batch));
  const long batch = options.batch > 0 ? options.batch : 256L * facts_.ranks;
  data::Loader<Scalar> loader(data, evaluation_options(facts_, batch, "the evaluated data set"));
  ExecutorOptions memory = memory_;
  memory.capacity = std::max(loader.capacity(), steps.capacity());
  steps.reserve(memory);
  steps.average_buffers();
  return evaluate_loader(steps, facts_, loader, options.metrics);
}

template <class Scalar> ExecutorOptions FitLoop<Scalar>::memory_for_prediction(long n) const {
  ExecutorOptions memory = memory_;
  memory.capacity = std::clamp(n, 1L, 256L);
  return memory;
}

template <class Scalar> const std::string& FitLoop<Scalar>::callback_state() {
  if (callbacks_) keep_callbacks();
  return callback_state_;
}

template <class Scalar> void FitLoop<Scalar>::resume(Steps& steps, FileRecords&& records) {
  place_ = records.place;
  if (const FitFacts facts = steps.facts(); facts.local_sums) {
    const auto& all = place_.sums_of_ranks;
    if (facts.rank < facts.ranks && all.size() == 3 * static_cast<std::size_t>(facts.ranks)) {
      const double* const own = all.data() + 3 * facts.rank;
      place_.sums = {own[0], own[1], own[2]};
    } else if (facts.rank != 0) {
      place_.sums = {};  // the file's are of all ranks
    }
  }
  history_ = std::move(records.history);
  callback_state_ = std::move(records.callbacks);
  loaded_optimizer_ = std::move(records.optimizer);
  loaded_seed_ = Seed{place_.order.seed};
  fitting_ = false;
  resumed_ = true;
}

template <class Scalar>
data::LoaderOptions FitLoop<Scalar>::loader_options(Steps& steps, const data::DatasetView& train, const FitOptions& options) {
  data::LoaderOptions o = facts_.loader;
  o.name = "the training data set";
  o.batch = options.batch;
  o.batch_per_rank = options.loader.batch_per_rank;
  o.shuffle = options.loader.shuffle;
  o.seed = seed_;
  o.ranks = facts_.parts;
  o.rank = facts_.part;
  o.shards = facts_.virtual_shards;
  o.partition = options.loader.partition;
  o.last = options.loader.last;
  o.prefetch = options.loader.prefetch;
  o.prefetch_threads = options.loader.prefetch_threads;
  o.busy_threads = busy_threads(options);
  shard_sizes_.clear();
  if (options.loader.partition == data::Partition::local) {
    std::vector<double> sizes(static_cast<std::size_t>(o.ranks), 0);
    if (facts_.scores) sizes[static_cast<std::size_t>(o.rank)] = static_cast<double>(train.size());
    steps.reduce({sizes.data(), sizes.size()});
    for (double s : sizes) shard_sizes_.push_back(static_cast<std::int64_t>(s));
    o.sizes = {shard_sizes_.data(), shard_sizes_.size()};
  }
  return o;
}

/// The validation set is fetched as the training set is.
template <class Scalar> data::LoaderOptions FitLoop<Scalar>::validation_options(long batch, const FitOptions& options) const {
  data::LoaderOptions o = evaluation_options(facts_, batch, "the validation data set");
  o.prefetch = options.loader.prefetch;
  o.prefetch_threads = options.loader.prefetch_threads;
  o.busy_threads = busy_threads(options);
  return o;
}

/// All memory, and whatever layers want beforehand, for every batch size that will come.
template <class Scalar> void FitLoop<Scalar>::reserve(Steps& steps, data::Loader<Scalar>& loader,
                                                      data::Loader<Scalar>* validation, const FitOptions& options) {
  memory_ = {.execution = options.compute.execution, .threads = options.threads, .denormals = options.compute.denormals};
  ExecutorOptions memory = memory_;
  memory.capacity = validation ? std::max(loader.capacity(), validation->capacity()) : loader.capacity();
  steps.reserve(memory);
  long sizes[4];
  long* end = sizes;
  for (auto* l : {&loader, validation})
    for (std::int64_t s : {std::int64_t{0}, l ? l->steps() - 1 : 0})
      if (l && l->steps() > 0)
        if (const long n = l->share(s).count(); std::find(sizes, end, n) == end) *end++ = n;
  for (const long* n = sizes; n < end; ++n) steps.prepare(*n);
}

template <class Scalar> void FitLoop<Scalar>::keep_callbacks() {
  callback_failure_.clear();
  noting(callback_failure_, [&] {
    const std::vector<std::byte> bytes = to_bytes(*callbacks_);
    callback_state_.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
}

/// Of a loaded training that goes on: the file's, unless another is given.
template <class Scalar> Seed FitLoop<Scalar>::seed_of(const FitOptions& options, Seed of_model) const {
  if (options.seed.value != 0) return options.seed;
  return loaded_seed_.value != 0 ? loaded_seed_ : of_model;
}

template <class Scalar> void FitLoop<Scalar>::describe(const FitOptions& options, Seed of_model, NamedValues& to) const {
  to.add("the seed (.seed, else the model's)", seed_of(options, of_model).value);
  to.add("whether load() was called", resumed_);
}

template <class Scalar>
EpochOrder FitLoop<Scalar>::order_of(const data::Loader<Scalar>& loader, const FitOptions& options) const {
  std::int64_t samples = shard_sizes_.empty() ? loader.dataset().size() : 0;
  for (const std::int64_t n : shard_sizes_) samples += n;
  return {.seed = seed_.value,
          .batch = loader.batch(),
          .samples = samples,
          .shards = hash_of_shards({shard_sizes_.data(), shard_sizes_.size()}),
          .shuffle = options.loader.shuffle,
          .keeps_last = options.loader.last == data::LastBatch::keep};
}

template <class Scalar> void FitLoop<Scalar>::begin(Steps& steps, data::Loader<Scalar>& loader, const FitOptions& options) {
  continues_ = resumed_ && goes_on();
  if (!continues_) {  // a fit of its own, whose epochs count on from the last
    place_.base += place_.epoch + (place_.step > 0 ? 1 : 0);
    place_.epoch = place_.step = 0;
    place_.sums = {};
    place_.samples = 0;
    place_.rate_factor = 1;
    place_.first_step = steps.steps();
    history_ = History{};
  }
  const EpochOrder order = order_of(loader, options);
  if (continues_) {
    check_epochs(place_, options.epochs), check_order(place_, order);
    if (facts_.rank == 0) say_others(loaded_optimizer_, steps.optimizer_lines(), place_, order);
  }
  loaded_optimizer_.clear();
  resumed_ = false;
  place_.running = true;
  place_.ended = false;
  place_.order = order;
  if (place_.step > loader.steps())
    throw ArgumentError("fit: the loaded training was at step " + std::to_string(place_.step) +
                        " of its epoch, this data set and batch have " + std::to_string(loader.steps()) +
                        ": go on with the same .batch and data");
}

template <class Scalar> void FitLoop<Scalar>::epoch(Work& work) {
  Steps& steps = work.steps;
  const FitOptions& options = work.options;
  const std::int64_t number = place_.base + place_.epoch, count = work.loader.steps();
  if (place_.step > 0) work.loader.seek({number, place_.step});
  work.begin = seconds_now(), work.exposed = steps.exposed_seconds();
  work.factor = 1;
  int pending = 0;           // batches of the accumulation that have gone
  std::int64_t waiting = 0;  // their samples
  steps.set_totals(place_.sums);
  fitting_ = true;
  steps.epoch_begins(number);
  for (const data::Batch<Scalar>& batch : work.loader.epoch(number)) {
    StepOptions step;
    step.lr_factor = work.factor = factor_of(work.schedule, steps.steps() - place_.first_step) * place_.rate_factor;
    step.clip_norm = options.clip_norm;
    step.accumulate = pending > 0;
    step.update = pending + 1 == options.step.accumulate || batch.step + 1 == count;
    step.key = random_key(seed_.value, 0x73746570ull + static_cast<std::uint64_t>(number * count + batch.step));  // "step"
    step.graph = options.compute.graph;
    step.finite = work.judge.judges_step();
    steps.step(batch, step);
    waiting += batch.global_count;
    place_.step = batch.step + 1;
    pending = step.update ? 0 : pending + 1;
    ++work.steps_done;
    if (!step.update) continue;
    const std::int64_t samples = std::exchange(waiting, 0);
    if (step.finite && !work.judge.made(batch, epoch_number(), work.factor)) continue;
    place_.samples += samples;
    work.callbacks.on_update(steps.steps());
    if (after_step(work, batch)) break;
  }
  place_.sums = steps.totals();
  work.judge.look(place_.sums, epoch_number(), work.factor);
  fitting_ = false;
  if (const std::string_view note = steps.note(); !note.empty() && !std::exchange(noted_, true))  // once
    work.progress.line(std::string(note));
  if (place_.step == count) end_epoch(work);  // else it was stopped within the epoch
}

/// Of a training that was saved after the last step of an epoch, before its end.
template <class Scalar> void FitLoop<Scalar>::end_loaded_epoch(Work& work) {
  work.begin = seconds_now(), work.exposed = work.steps.exposed_seconds();
  work.factor = factor_of(work.schedule, work.steps.steps() - 1 - place_.first_step) * place_.rate_factor;
  work.steps.epoch_begins(place_.base + place_.epoch);
  end_epoch(work);
}

/// Validation, the record, callbacks.
template <class Scalar> void FitLoop<Scalar>::end_epoch(Work& work) {
  Steps& steps = work.steps;
  const std::int64_t number = place_.base + place_.epoch;
  steps.epoch_ends(number);
  if (facts_.local_sums) place_.sums = sum_over_ranks(steps, place_.sums);
  work.judge.look(place_.sums, epoch_number(), work.factor);
  left_out_ += work.judge.end_of_epoch(work.progress, place_.samples == 0);
  EpochRecord record;
  record.epoch = static_cast<int>(number) + 1;
  record.step = steps.steps();
  record.training.loss = place_.sums.mean();
  if (facts_.labels && place_.samples > 0)
    record.training.accuracy = place_.sums.correct / static_cast<double>(place_.samples * facts_.labels_each);
  record.learning_rate = steps.rate() * work.factor;
  const double trained = seconds_now() - work.begin;
  record.samples_per_second = static_cast<double>(place_.samples) / trained;
  record.exposed_communication = (steps.exposed_seconds() - work.exposed) / trained;
  if (work.validation) {
    steps.average_buffers();
    record.validation = evaluate_loader(steps, facts_, *work.validation, work.metrics);
  }
  record.seconds = seconds_now() - work.begin;
  place_.epoch += 1;
  place_.step = 0;
  place_.sums = {};
  place_.samples = 0;
  history_.add(record);
  work.callbacks.on_epoch_end(history_.last(), work.control);
  agree(work);
  work.progress.epoch(history_.back(), static_cast<int>(place_.base) + work.options.epochs);
}

/// A multiple of `every` is among the steps behind `before`, of which there may be several: PipeDream makes one a micro-batch.
inline bool is_due(std::int64_t every, std::int64_t before, std::int64_t now) {
  return every > 0 && now / every != before / every;
}

/// Records, callbacks, the progress line. True: stop here.
template <class Scalar> bool FitLoop<Scalar>::after_step(Work& work, const data::Batch<Scalar>& batch) {
  const std::int64_t made = work.steps.steps(), before = std::exchange(work.seen, made);
  if (is_due(work.options.check.replicas_every, before, made)) work.steps.compare_weights(text("after step {}", made));
  const bool wanted = work.options.record_steps || work.steps_wanted;
  if (wanted || work.options.progress) {
    if (wanted) record_step(work, batch);
    const double now = wanted ? work.last : seconds_now();
    if (work.options.progress && work.progress.due(now)) show(work, now);
    if (work.control.stopping()) return true;
  }
  if (commits_ && (facts_.ranks == 1 || facts_.in_step)) commits_->after_step();
  look_for_signal(work);
  if (work.control.stopping()) return true;
  if (is_due(work.options.checkpoint.every, before, made)) compare_and_commit(work);
  return false;
}

template <class Scalar> void FitLoop<Scalar>::record_step(Work& work, const data::Batch<Scalar>& batch) {
  const nn::LossSums sums = work.steps.sums();  // a device is waited for here
  if (!facts_.host) work.judge.look(sums, epoch_number(), work.factor);
  const double now = seconds_now();
  const auto counted = static_cast<double>((facts_.local_sums ? batch.count : batch.global_count) * facts_.labels_each);
  StepRecord record;
  record.step = work.steps.steps();
  record.epoch = epoch_number();
  record.loss = sums.mean();
  if (facts_.labels) record.accuracy = sums.correct / std::max(1.0, counted * work.options.step.accumulate);
  record.learning_rate = work.steps.rate() * work.factor;
  record.seconds = now - work.last;
  record.samples_per_second = static_cast<double>(batch.global_count) / record.seconds;
  record.exposed_communication = (work.steps.exposed_seconds() - work.exposed) / std::max(1e-9, now - work.begin);
  if (work.options.record_steps) history_.add(record);
  if (work.steps_wanted) {
    work.callbacks.on_step_end(record, work.control);
    agree(work);
  }
  work.last = now;
}

template <class Scalar> void FitLoop<Scalar>::show(Work& work, double now) {
  const FitOptions& options = work.options;
  place_.sums = work.steps.totals();
  work.judge.look(place_.sums, epoch_number(), work.factor);
  ProgressState state;
  state.epoch = epoch_number();
  state.epochs = static_cast<int>(place_.base) + options.epochs;
  state.step = place_.step;
  state.steps = work.loader.steps();
  state.loss = place_.sums.mean();
  if (facts_.labels)
    state.accuracy = place_.sums.correct / std::max(1.0, static_cast<double>(place_.samples * facts_.labels_each));
  const double passed = std::max(1e-9, now - work.begin);
  state.samples_per_second = static_cast<double>(place_.samples) / passed;
  if (facts_.ranks > 1) state.exposed_communication = (work.steps.exposed_seconds() - work.exposed) / passed;
  const std::int64_t left = (options.epochs - place_.epoch) * state.steps - place_.step;
  state.seconds_left = seconds_left(now - work.start, work.steps_done, work.steps_done + left);
  work.progress.update(state, now);
}

/// One signal on one rank ends the fit on all.
template <class Scalar> void FitLoop<Scalar>::stop_at_signal(Work& work, const double* of_all) {
  if (work.signals.take(of_all)) work.control.stop(name_of_signal(work.signals.ending()));
}

/// After an update.
template <class Scalar> void FitLoop<Scalar>::look_for_signal(Work& work) {
  FitSignals& signals = work.signals;
  if (!signals.updated()) return;
  if (facts_.ranks == 1) {
    if (signals.heard(work.steps.signal_of_servers()) != 0) agree(work);
    return;
  }
  if (work.steps_wanted || !facts_.asks || !signals.due([&] { return work.steps.all_met(); })) return;
  double heard[4] = {};
  signals.count(work.steps.signal_of_servers(), heard);
  const double now = seconds_now();
  if (facts_.rank == 0) heard[3] = signals.next_round(now);
  work.steps.reduce(heard);
  signals.asked(now, heard[3]);
  stop_at_signal(work, heard);
}

/// What callbacks asked for becomes what all ranks do: they stop and keep weights where one asks to; the rate is rank 0's.
template <class Scalar> void FitLoop<Scalar>::agree(Work& work) {
  FitControl& control = work.control;
  if (facts_.ranks > 1) {
    double asked[7] = {control.stopping() ? 1.0 : 0.0, control.keeps_weights() ? 1.0 : 0.0,
                       facts_.rank == 0 ? control.rate_factor() : 0.0, control.finishing() ? 1.0 : 0.0};
    work.signals.count(work.steps.signal_of_servers(), asked + 4);
    work.steps.reduce(asked);
    control.agree_to_stop(asked[0] > 0);
    control.agree_to_finish(asked[3] > 0);
    control.agree_to_keep(asked[1] > 0, asked[2]);
    stop_at_signal(work, asked + 4);
  } else {
    double own[3];
    work.signals.count(work.steps.signal_of_servers(), own);
    stop_at_signal(work, own);
  }
  place_.rate_factor = control.rate_factor();
  if (facts_.serves && place_.rate_factor != 1)
    throw ArgumentError(
        "fit: a callback asks for another rate, but the servers that make the updates hear of none: take a .schedule");
  if (!control.keeps_weights()) return;
  work.steps.keep_weights();
  control.agree_to_keep(false, place_.rate_factor);
}

#if SKEIN_COMPILED
template class FitLoop<float>;
template class FitLoop<double>;
#endif

}  // namespace skein::inline SKEIN_ABI::train::detail

SKEIN_END_COLD
