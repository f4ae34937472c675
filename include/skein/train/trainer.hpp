// SPDX-License-Identifier: Apache-2.0
// Trainer: fit, evaluate, predict, save, load. The loop around TrainStep, the same for every policy: what differs between one
// core, threads, ranks and devices is in the types of the model and the policy. It waits for a device only where a record, a
// callback or a progress line wants a number.
#pragma once
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "../data/loader.hpp"
#include "../tensor/tensor.hpp"
#include "archive.hpp"
#include "clock.hpp"
#include "data_check.hpp"
#include "history.hpp"
#include "host_copy.hpp"
#include "model_file.hpp"
#include "options.hpp"
#include "predict.hpp"
#include "check_trainer.hpp"
#include "progress.hpp"
#include "train_step.hpp"

namespace skein::inline SKEIN_ABI {

/// Trains a model on a data set: epochs, schedules, validation, callbacks, checkpoints, under a policy.
template <class Model, class Loss, class Optimizer, class Policy = parallel::SingleProcess> class Trainer {
  static constexpr train::detail::Part fault = train::detail::first_fault<Loss, Optimizer, Policy, Model>();
  static_assert(train::detail::assert_trainer<fault, Loss, Optimizer, Policy, Model>());

 public:
  using Scalar = typename Model::Scalar;
  using Element = typename Model::Element;
  using Device = typename Model::device;
  using TrainStep = typename train::detail::TrainStepOf<fault == train::detail::Part::none, Model, Loss, Optimizer, Policy>::type;

  /// With several ranks, all construct theirs at the same time: initial weights become those of rank 0, and ranks whose models
  /// or options differ refuse to start, all with the same CommError. The model must outlive the trainer.
  explicit Trainer(Model& model, Loss loss = {}, Optimizer optimizer = {}, Policy policy = {})
      : policy_(std::move(policy)), train_step_(model, std::move(loss), optimizer, policy_) {}
  /// A model that ends with the statement is refused.
  explicit Trainer(Model&& model, Loss loss = {}, Optimizer optimizer = {}, Policy policy = {})
      : Trainer(model, std::move(loss), optimizer, std::move(policy)) {
    static_assert(train::detail::outlives_its_trainer<Model>,
                  "the model must outlive its trainer: give it a name, sk::Model<...> model; sk::Trainer trainer{model, ...}");
  }

  /// Trains for options.epochs epochs and returns their history (the same on all ranks). After load() of a file that was saved
  /// within a fit, it goes on where that one was. Throws ArgumentError for options, data and network that do not fit.
  History fit(data::DatasetView train, const FitOptions& options) {
    train::check_data<Model, Loss>(train, "training");
    if (options.epochs < 0) throw ArgumentError("fit: .epochs is negative");
    (void)optim::clip_norm_of(train_step_.optimizer().optimizer(), options.clip_norm);  // not twice
    if (options.step.accumulate < 1) throw ArgumentError("fit: .step.accumulate must be at least 1 batch a step");
    if (options.step.loss_scaling) {
      if constexpr (Model::scales_loss) train_step_.set_loss_scaling(*options.step.loss_scaling);
      else
        throw ArgumentError(
            "fit: .step.loss_scaling is for models whose activations are stored in 16 bits, as those of precision::fp16: leave "
            "it "
            "out");
    }
    if constexpr (parallel::ServesUpdates<typename TrainStep::PolicyState>) train::check_served(train_step_, options.clip_norm);
    if (policy_state().serves()) return serve(options);
    seed_ = options.seed.value != 0 ? options.seed : train_step_.model().seed();
    data::Loader<Scalar> loader(train, loader_options(train, options));
    std::unique_ptr<data::Loader<Scalar>> validation;
    if (options.validate) {
      train::check_data<Model, Loss>(options.validate, "validation");
      validation = std::make_unique<data::Loader<Scalar>>(options.validate, evaluation_options(loader.batch()));
    }
    reserve(loader, validation.get(), options);
    begin_fit(loader);
    Work work(options, policy_state().rank());
    if (!callback_state_.empty() && continues_ && work.callbacks.size() > 0)
      train::from_bytes(std::as_bytes(std::span(callback_state_)), work.callbacks, "the callbacks of the loaded training");
    callback_state_.clear();
    callbacks_ = &work.callbacks;
    const Forget forget{callbacks_};
    history_.reserve(history_.size() + static_cast<std::size_t>(options.epochs),
                     options.record_steps ? history_.steps().size() + static_cast<std::size_t>(options.epochs) *
                                                                          static_cast<std::size_t>(loader.steps())
                                          : 0);
    work.callbacks.on_fit_begin(work.control);
    agree(work.control);
    double wanted[1] = {work.callbacks.wants_steps() ? 1.0 : 0.0};  // by any rank: all must agree after each step then
    policy_state().reduce(wanted);
    work.steps_wanted = wanted[0] > 0;
    work.start = work.last = train::seconds_now();
    for (; place_.epoch < options.epochs && !work.control.stopping();) {
      work.callbacks.on_epoch_begin(static_cast<int>(place_.base + place_.epoch) + 1, work.control);
      epoch(loader, validation.get(), options, work);
    }
    if (work.control.stopping() && work.control.reason().size() > 0)
      work.progress.line("stopped: " + std::string(work.control.reason()));
    place_.running = place_.epoch < options.epochs;  // stopped: load() and fit() go on
    if (place_.running) keep_callbacks();            // for a save() after the stop
    if (auto lease = model().modify(); !policy_state().finish()) lease.unchanged();
    policy_state().average_buffers();
    History result = place_.running ? history_ : std::exchange(history_, History{});  // a stopped fit may be saved and go on
    work.callbacks.on_fit_end(result);
    return result;
  }

  /// Loss, accuracy and metrics over a data set, summed over all ranks, each of which evaluates its part.
  train::Scores evaluate(data::DatasetView data, EvaluateOptions options = {}) {
    train::check_data<Model, Loss>(data, "evaluated");
    if (policy_state().serves()) return {};  // the others' affair
    const long batch = options.batch > 0 ? options.batch : 256L * policy_state().ranks();
    data::Loader<Scalar> loader(data, evaluation_options(batch));
    train_step_.reserve({.capacity = std::max(loader.capacity(), train_step_.reserved() ? train_step_.executor().capacity() : 0L),
                         .execution = execution_,
                         .threads = threads_,
                         .denormals = denormals_});
    policy_state().average_buffers();
    return evaluate(loader, options.metrics);
  }

  /// The outputs for each row of x, (samples, outputs). This rank alone; all samples.
  template <int Rank> Tensor<Scalar, 2, Device> predict(TensorView<const Element, Rank, Device> x) {
    reserve_for_prediction(x.extent(0));
    return train::predict_rows<Model, Rank>(model(), x, train_step_.executor().capacity(), forward());
  }
  template <int Rank> Tensor<Scalar, 2, Device> predict(const Tensor<Element, Rank, Device>& x) {
    return predict<Rank>(x.view());
  }
  /// The same for each sample of a data set.
  Tensor<Scalar, 2, Device> predict(data::DatasetView data) {
    train::check_samples<Model>(data, "predicted");
    reserve_for_prediction(static_cast<long>(data.size()));
    return train::predict_samples(model(), data, train_step_.executor().capacity(), forward());
  }

  /// Writes model, buffers, optimizer state, step and place in the data to one file, so that load() and fit() go on with the same
  /// bits. All ranks call it; rank 0 writes beside the old file and renames. Throws FileError (on every rank CommError).
  void save(const std::string& path) {
    policy_state().average_buffers();
    train_step_.gather_state();
    policy_state().before_save();
    std::string failure;
    train::TrainingPosition place = place_;
    if (fitting_) place.sums = train_step_.totals();
    if constexpr (TrainStep::PolicyState::local_sums) place.sums = over_ranks(place.sums);
    if (policy_state().rank() == 0) {
      try {
        if (callbacks_) keep_callbacks();
        train::save_training(path, train_step_, place, history_, callback_state_);
      } catch (const Error& e) { failure = e.what(); }
    }
    train_step_.drop_state();
    double failed[1] = {failure.empty() ? 0.0 : 1.0};
    policy_state().reduce(failed);
    if (!failure.empty()) throw FileError(path, -1, "could not be saved: " + failure);
    if (failed[0] != 0) throw CommError("save: rank 0 could not write '" + path + "': see its message");
  }
  /// Reads what save() wrote; every rank reads the file itself. Throws FileError for a file of another network, optimizer or
  /// scalar type, and for a damaged one; nothing is changed then.
  void load(const std::string& path) {
    train::load_training(path, train_step_, place_, history_, callback_state_);
    {
      const auto lease = model().modify();
      policy_state().start();
    }
    if (TrainStep::PolicyState::local_sums && policy_state().rank() != 0) place_.sums = {};  // those in the file are of all ranks
    fitting_ = false;
    resumed_ = true;
  }

  /// The parts under fit: train step, executor, optimizer, policy state.
  TrainStep& train_step() { return train_step_; }
  Model& model() const { return train_step_.model(); }

 private:
  struct Work {  // of one fit
    Work(const FitOptions& o, int rank)
        : callbacks(o.callbacks), metrics(o.metrics), progress(train::ProgressOptions{.rank = o.progress ? rank : 1}) {}
    train::Callbacks callbacks;
    std::vector<train::AnyMetric> metrics;
    train::Control control;
    train::Progress progress;
    double start = 0, last = 0;  // seconds
    std::int64_t steps_done = 0;
    bool steps_wanted = false;
  };

  struct Forget {  // callbacks live as long as their fit
    train::Callbacks*& callbacks;
    ~Forget() { callbacks = nullptr; }
  };

  auto& policy_state() { return train_step_.policy_state(); }
  /// Answers that a sample is asked for: accuracy counts them.
  static constexpr long labels_each = nn::labels_each(Model::output_extents);

  /// The parts of a batch, this rank's, and whether it has that part's outputs: the ranks of a pipeline have one part together,
  /// and its last stage the outputs.
  int parts() {
    if constexpr (parallel::SharesBatches<typename TrainStep::PolicyState>) return policy_state().shards();
    else return policy_state().ranks();
  }
  int part() {
    if constexpr (parallel::SharesBatches<typename TrainStep::PolicyState>) return policy_state().shard();
    else return policy_state().rank();
  }
  bool scores() {
    if constexpr (parallel::SharesBatches<typename TrainStep::PolicyState>) return policy_state().scores();
    else return true;
  }

  data::LoaderOptions loader_options(const data::DatasetView& train, const FitOptions& options) {
    data::LoaderOptions o = train::device_loader_options<Model>();
    o.batch = options.batch;
    o.batch_per_rank = options.loader.batch_per_rank;
    o.shuffle = options.loader.shuffle;
    o.seed = seed_;
    o.ranks = parts();
    o.rank = part();
    o.shards = TrainStep::virtual_shards;
    o.partition = options.loader.partition;
    o.last = options.loader.last;
    o.prefetch = options.loader.prefetch;
    o.busy_threads = (options.threads > 0 ? options.threads : train_step_.threads()) * policy_state().local_ranks();
    if (options.loader.partition == data::Partition::local) {
      std::vector<double> sizes(static_cast<std::size_t>(o.ranks), 0);
      if (scores()) sizes[static_cast<std::size_t>(o.rank)] = static_cast<double>(train.size());
      policy_state().reduce(sizes);
      shard_sizes_.clear();
      for (double s : sizes) shard_sizes_.push_back(static_cast<std::int64_t>(s));
      o.sizes = shard_sizes_;
    }
    return o;
  }
  data::LoaderOptions evaluation_options(long batch) {
    data::LoaderOptions o = train::device_loader_options<Model>();
    o.batch = batch;
    o.shuffle = false;
    o.ranks = parts();
    o.rank = part();
    o.prefetch = data::Prefetch::off;
    return o;
  }

  /// All memory, and whatever layers want beforehand, for every batch size that will come.
  void reserve(data::Loader<Scalar>& loader, data::Loader<Scalar>* validation, const FitOptions& options) {
    threads_ = options.threads;
    execution_ = options.compute.execution;
    denormals_ = options.compute.denormals;
    long capacity = loader.capacity();
    if (validation) capacity = std::max(capacity, validation->capacity());
    train_step_.reserve({.capacity = capacity,
                         .execution = options.compute.execution,
                         .threads = options.threads,
                         .denormals = options.compute.denormals});
    std::vector<long> sizes;
    for (auto* l : {&loader, validation})
      for (std::int64_t s : {std::int64_t{0}, l ? l->steps() - 1 : 0})
        if (l && l->steps() > 0) sizes.push_back(l->share(s).count());
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    for (long n : sizes) train_step_.executor().prepare(n);
  }
  void reserve_for_prediction(long n) {
    if (train_step_.reserved()) return;
    train_step_.reserve(
        {.capacity = std::clamp(n, 1L, 256L), .execution = execution_, .threads = threads_, .denormals = denormals_});
  }

  void keep_callbacks() {
    const std::vector<std::byte> bytes = train::to_bytes(*callbacks_);
    callback_state_.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  void begin_fit(data::Loader<Scalar>& loader) {
    continues_ = resumed_ && place_.running;
    if (!continues_) {  // a fit of its own, whose epochs count on from the last
      place_.base += place_.epoch + (place_.step > 0 ? 1 : 0);
      place_.epoch = place_.step = 0;
      place_.sums = {};
      place_.samples = 0;
      history_ = History{};
    }
    resumed_ = false;
    place_.running = true;
    if (place_.step > loader.steps())
      throw ArgumentError("fit: the loaded training was at step " + std::to_string(place_.step) +
                          " of its epoch, this data set and batch have " + std::to_string(loader.steps()) +
                          ": go on with the same .batch and data");
  }

  void epoch(data::Loader<Scalar>& loader, data::Loader<Scalar>* validation, const FitOptions& options, Work& work) {
    const std::int64_t number = place_.base + place_.epoch;
    if (place_.step > 0) loader.seek({number, place_.step});
    const double begin = train::seconds_now(), exposed = policy_state().exposed_seconds();
    double factor = 1;
    int pending = 0;  // batches of the accumulation that have gone
    train_step_.set_totals(place_.sums);
    fitting_ = true;
    policy_state().epoch_begins(number);
    for (const data::Batch<Scalar>& batch : loader.epoch(number)) {
      train::StepOptions step;
      step.lr_factor = factor = static_cast<double>(options.schedule(train_step_.steps()));
      step.clip_norm = options.clip_norm;
      step.accumulate = pending > 0;
      step.update = pending + 1 == options.step.accumulate || batch.step + 1 == loader.steps();
      step.key =
          random_key(seed_.value, 0x73746570ull + static_cast<std::uint64_t>(number * loader.steps() + batch.step));  // "step"
      step.graph = options.compute.graph;
      const typename TrainStep::Sums sums = train_step_.step(batch, step);
      place_.samples += batch.global_count;
      place_.step = batch.step + 1;
      pending = step.update ? 0 : pending + 1;
      ++work.steps_done;
      if (!step.update) continue;
      if (after_step(loader, options, work, sums, batch, factor, begin, exposed)) break;
    }
    place_.sums = train_step_.totals();
    fitting_ = false;
    say_note(work);
    if (place_.step < loader.steps()) return;  // stopped within the epoch
    if (auto lease = model().modify(); !policy_state().epoch_ends(number)) lease.unchanged();
    if constexpr (TrainStep::PolicyState::local_sums) place_.sums = over_ranks(place_.sums);
    train::EpochRecord record;
    record.epoch = static_cast<int>(number) + 1;
    record.step = train_step_.steps();
    record.training.loss = place_.sums.mean();
    if constexpr (Loss::target == nn::TargetKind::label)
      if (place_.samples > 0) record.training.accuracy = place_.sums.correct / static_cast<double>(place_.samples * labels_each);
    record.learning_rate = static_cast<double>(train_step_.optimizer().optimizer().lr) * factor;
    const double trained = train::seconds_now() - begin;
    record.samples_per_second = static_cast<double>(place_.samples) / trained;
    record.exposed_communication = (policy_state().exposed_seconds() - exposed) / trained;
    if (validation) {
      policy_state().average_buffers();
      record.validation = evaluate(*validation, work.metrics);
    }
    record.seconds = train::seconds_now() - begin;
    place_.epoch += 1;
    place_.step = 0;
    place_.sums = {};
    place_.samples = 0;
    history_.add(record);
    work.callbacks.on_epoch_end(history_.last(), work.control);
    agree(work.control);
    work.progress.epoch(history_.back(), static_cast<int>(place_.base) + options.epochs);
  }

  /// Records, callbacks, the progress line. True: stop here.
  bool after_step(data::Loader<Scalar>& loader, const FitOptions& options, Work& work, const typename TrainStep::Sums& step_sums,
                  const data::Batch<Scalar>& batch, double factor, double begin, double exposed) {
    const bool wanted = options.record_steps || work.steps_wanted;
    if (!wanted && !options.progress) return false;
    if (wanted) {
      const nn::LossSums sums = step_sums;  // a device is waited for here
      const double now = train::seconds_now();
      train::StepRecord record;
      record.step = train_step_.steps();
      record.epoch = static_cast<int>(place_.base + place_.epoch) + 1;
      record.loss = sums.mean();
      if constexpr (Loss::target == nn::TargetKind::label)
        record.accuracy =
            sums.correct / std::max(1.0, static_cast<double>(counted(batch) * labels_each) * options.step.accumulate);
      record.learning_rate = static_cast<double>(train_step_.optimizer().optimizer().lr) * factor;
      record.seconds = now - work.last;
      record.samples_per_second = static_cast<double>(batch.global_count) / record.seconds;
      record.exposed_communication = (policy_state().exposed_seconds() - exposed) / std::max(1e-9, now - begin);
      if (options.record_steps) history_.add(record);
      if (work.steps_wanted) {
        work.callbacks.on_step_end(record, work.control);
        agree(work.control);
      }
      work.last = now;
    }
    const double now = wanted ? work.last : train::seconds_now();
    if (options.progress && work.progress.due(now)) {
      place_.sums = train_step_.totals();
      train::ProgressState state;
      state.epoch = static_cast<int>(place_.base + place_.epoch) + 1;
      state.epochs = static_cast<int>(place_.base) + options.epochs;
      state.step = place_.step;
      state.steps = loader.steps();
      state.loss = place_.sums.mean();
      if constexpr (Loss::target == nn::TargetKind::label)
        state.accuracy = place_.sums.correct / std::max(1.0, static_cast<double>(place_.samples * labels_each));
      state.samples_per_second = static_cast<double>(place_.samples) / std::max(1e-9, now - begin);
      if (policy_state().ranks() > 1)
        state.exposed_communication = (policy_state().exposed_seconds() - exposed) / std::max(1e-9, now - begin);
      const std::int64_t left = (options.epochs - place_.epoch) * loader.steps() - place_.step;
      state.seconds_left = train::seconds_left(now - work.start, work.steps_done, work.steps_done + left);
      work.progress.update(state, now);
    }
    return work.control.stopping();
  }

  /// The samples that the sums of a step are about.
  static long counted(const data::Batch<Scalar>& batch) {
    return static_cast<long>(TrainStep::PolicyState::local_sums ? batch.count : batch.global_count);
  }

  nn::LossSums over_ranks(const nn::LossSums& own) {
    double all[3] = {own.loss, own.weight, own.correct};
    policy_state().reduce(all);
    return {all[0], all[1], all[2]};
  }

  /// Of a rank that serves: its history is empty.
  History serve([[maybe_unused]] const FitOptions& options) {
    if constexpr (parallel::ServesUpdates<typename TrainStep::PolicyState>)
      train_step_.serve(options.schedule, options.clip_norm);
    if (auto lease = model().modify(); !policy_state().finish()) lease.unchanged();
    place_.running = false;
    return {};
  }

  void agree(train::Control& control) {
    if (policy_state().ranks() <= 1) return;
    double stop[1] = {control.stopping() ? 1.0 : 0.0};
    policy_state().reduce(stop);
    control.agree(stop[0] > 0);
  }

  train::Scores evaluate(data::Loader<Scalar>& loader, std::vector<train::AnyMetric>& metrics) {
    typename TrainStep::Sums pending{};
    double samples = 0;
    bool more = false;
    train::HostCopy<Scalar, Device> host;
    for (auto& m : metrics)
      for (double& s : m.sums()) s = 0;
    for (const data::Batch<Scalar>& batch : loader.epoch(0)) {
      pending = train_step_.evaluate(batch, more);
      more = true;
      samples += static_cast<double>(batch.count);
      if (metrics.empty()) continue;
      feed(metrics, batch, host);
    }
    const nn::LossSums sums = pending;
    double totals[4] = {sums.loss, sums.weight, sums.correct, samples};
    if (!scores())
      for (double& t : totals) t = 0;
    policy_state().reduce(totals);
    train::Scores found;
    found.loss = totals[1] > 0 ? totals[0] / totals[1] : 0;
    if constexpr (Loss::target == nn::TargetKind::label)
      found.accuracy = totals[3] > 0 ? totals[2] / (totals[3] * labels_each) : 0;
    for (auto& m : metrics) {
      if (!scores())
        for (double& t : m.sums()) t = 0;
      policy_state().reduce(m.sums());
      found.set(m.name(), m.value());
    }
    return found;
  }

  /// The outputs of a batch that has been evaluated, a row a label, and what they are compared with.
  void feed(std::vector<train::AnyMetric>& metrics, const data::Batch<Scalar>& batch, train::HostCopy<Scalar, Device>& host) {
    constexpr long rows = nn::rows_of_sample<Loss>(Model::output_extents), width = TrainStep::Width / rows;
    const train::Rows<Scalar> outputs{host.read(train_step_.executor().outputs(),
                                                static_cast<std::size_t>(batch.count * TrainStep::OutputPitch), model().where()),
                                      rows > 1 ? width : TrainStep::OutputPitch, batch.count * rows, static_cast<int>(width)};
    for (auto& m : metrics) {
      if constexpr (Loss::target == nn::TargetKind::label)
        m.add(outputs, train::Labels(batch.labels, static_cast<std::size_t>(batch.count * rows)));
      else
        m.add(outputs, train::Rows<Scalar>{batch.targets, batch.target_pitch, batch.count,
                                           static_cast<int>(nn::target_length<Loss>(width))});
    }
  }

  /// forward(batch, to): the outputs of a batch, dense.
  auto forward() {
    return [this](const auto& batch, Scalar* to) {
      (void)train_step_.evaluate(batch);
      [[maybe_unused]] const auto here = train_step_.executor().memory().enter();
      ops::copy_rows<Device>(to, TrainStep::Width, train_step_.executor().outputs(), TrainStep::OutputPitch, batch.count,
                             TrainStep::Width);
    };
  }
  /// Once: why a step is not what it could be.
  void say_note(Work& work) {
    if (const std::string_view note = train_step_.device().note(); !note.empty() && !std::exchange(noted_, true))
      work.progress.line(std::string(note));
  }

  Policy policy_;
  TrainStep train_step_;
  train::TrainingPosition place_{};
  History history_{};  // of the fit that is going on
  Seed seed_{};
  std::vector<std::int64_t> shard_sizes_;
  int threads_ = 0;
  Execution execution_ = Execution::automatic;
  Denormals denormals_ = Denormals::flush;
  train::Callbacks* callbacks_ = nullptr;  // of the fit that is going on
  std::string callback_state_;             // of a loaded training, until its fit begins
  bool resumed_ = false, continues_ = false;
  bool fitting_ = false;  // within an epoch: its sums are the train step's
  bool noted_ = false;
};

}  // namespace skein::inline SKEIN_ABI
