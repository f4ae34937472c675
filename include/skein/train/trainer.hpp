// SPDX-License-Identifier: Apache-2.0
// Trainer: fit, evaluate, predict, save, load. The loop around TrainStep (fit_loop.hpp) is the same for every network and policy:
// what differs between one core, threads, ranks and devices is in the types of the model and the policy. It waits for a device
// only where a record, a callback or a progress line wants a number, and where weights are looked at or kept.
#pragma once
#include <concepts>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include "../comm/public_call.hpp"
#include "../data/loader.hpp"
#include "../tensor/tensor.hpp"
#include "agreement.hpp"
#include "check_data.hpp"
#include "check_fit.hpp"
#include "check_served.hpp"
#include "fit_loop.hpp"
#include "fitted_training_of.hpp"
#include "history.hpp"
#include "training_file.hpp"
#include "model_in_fit.hpp"
#include "options.hpp"
#include "predict.hpp"
#include "predict_table.hpp"
#include "preparation.hpp"
#include "refused_fits.hpp"
#include "refused_trainer.hpp"
#include "signal_watch.hpp"
#include "train_step.hpp"
#include "weights_file.hpp"

namespace skein::inline SKEIN_ABI {

SKEIN_BEGIN_COLD

/// Trains a model on a data set: epochs, schedules, validation, callbacks, checkpoints, under a policy.
template <class Model, class Loss, class Optimizer, class Policy = parallel::SingleProcess> class Trainer
    : train::detail::RefusedFits {
 public:
  using Scalar = typename Model::Scalar;
  using Element = typename Model::Element;
  using Device = typename Model::device;
  using TrainStep = typename train::detail::TrainStepOf<Model, Loss, Optimizer, Policy>::type;

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

  /// Trains for options.epochs epochs and returns their history (its epochs are the same on all ranks that train; a server's is
  /// empty). After load() it goes on where the file's fit was, and options.epochs is the total of both. Throws ArgumentError for
  /// options, data and network that do not fit, and CommError where the ranks differ in what they must have alike.
  History fit(data::DatasetView train, const FitOptions& options) {
    const comm::InPublicCall here(comm::PublicCall::fit);
    const train::ModelInFit in_fit(&model());
    const train::CallOfTrainer<TrainStep, nn::WeightsUse::Training> call(calls_, "fit", train_step_);
    agree_on_fit(train, options);
    if constexpr (std::same_as<Policy, parallel::SingleProcess>) train::warn_of_ranks_apart();
    if (!policy_state().serves()) train::check_data<Model, Loss>(train, "training");  // a server needs none
    if (options.epochs < 1)
      throw ArgumentError(text("fit: .epochs is {}: give 1 or more passes over the training data", options.epochs));
    optim::check_trains(optim::groups_of(train_step_.optimizer().optimizer()), Model::program);
    train::detail::take_step_options(train_step_, options);
    if constexpr (parallel::ServesUpdates<typename TrainStep::PolicyState>) train::check_served(train_step_, options);
    if (policy_state().serves()) return serve(options);
    if (options.validate) train::check_data<Model, Loss>(options.validate, "validation");
    prepared_.begin_fit(train, options.validate, kept_, policy_state().rank());
    if (!options.checkpoint.folder.empty() && policy_state().rank() == 0) prepared_.note_missing(kept_, "fit");
    Training training(train_step_, kept_weights_);
    return loop_.run(training, train, options, kept_);
  }

  using RefusedFits::fit;

  /// Loss, accuracy and metrics over a data set, summed over all ranks, each of which evaluates its part. Throws CommError where
  /// ranks give another data set, batch or metrics.
  train::Scores evaluate(data::DatasetView data, EvaluateOptions options = {}) {
    const comm::InPublicCall here(comm::PublicCall::evaluate);
    const train::CallOfTrainer<TrainStep> call(calls_, "evaluate", train_step_);
    if (policy_state().serves()) return {};  // the others' affair; a server needs no data
    agree_on_evaluation(data, options);
    train::check_data<Model, Loss>(data, "evaluated");
    prepared_.check_samples(kept_, data, "evaluate", policy_state().rank());
    Training training(train_step_, kept_weights_);
    return loop_.evaluate(training, data, options);
  }

  /// The outputs for each row of x, (samples, outputs). This rank alone; under a Pipeline all its ranks call it, with the same
  /// rows. Throws ArgumentError where a TableEncoder is kept.
  template <int Rank> Tensor<Scalar, 2, Device> predict(TensorView<const Element, Rank, Device> x) {
    const train::CallOfTrainer<TrainStep> call(calls_, "predict", train_step_);
    train::refuse_rows_of_tensor(kept_);
    reserve_for_prediction(x.extent(0));
    return train::predict_rows<Model, Rank>(model(), x, train_step_.capacity(), forward());
  }
  template <TensorExpression E> Tensor<Scalar, 2, Device> predict(const E& x) {
    const auto& rows = train::as_tensor<Element, Device>(x);
    return predict<E::rank>(rows.view());
  }
  /// The outputs for each sample of a data set.
  Tensor<Scalar, 2, Device> predict(data::DatasetView data) {
    const train::CallOfTrainer<TrainStep> call(calls_, "predict", train_step_);
    train::check_samples<Model>(data, "predicted");
    prepared_.check_samples(kept_, data, "predict", policy_state().rank());
    reserve_for_prediction(static_cast<long>(data.size()));
    return train::predict_samples(model(), data, train_step_.capacity(), forward());
  }

  /// The outputs for each row of a table, as it comes: the TableEncoder that keep() was given, or that the loaded file has,
  /// encodes it, and they are in the units of the table. Throws ArgumentError where there is none.
  template <std::same_as<data::Table> Rows> Tensor<Scalar, 2> predict(const Rows& table) {
    return train::predict_table<Model>(kept<data::TableEncoder>(), table,
                                       [this](const data::DatasetView& samples) { return predict(samples); });
  }

  /// Writes model, buffers, optimizer state, step, place in the data and the states of callbacks to one file, so that load() and
  /// fit() go on with the same bits. Where a fit has given the model the weights that a callback kept (.restore_best), the file
  /// has those, and goes on from them. All ranks call it; rank 0 writes, where its `path` says, beside the old file and
  /// renames. Throws FileError where it cannot, and what a callback's or the policy's own saving throws (on every other rank
  /// CommError).
  void save(const std::string& path) {
    const comm::InPublicCall here(comm::PublicCall::save);
    if constexpr (parallel::ServesUpdates<typename TrainStep::PolicyState>) train::detail::refuse_save_at_end(loop_.in_fit_end());
    policy_state().barrier();  // who has not called this is named
    if (policy_state().rank() == 0) prepared_.note_missing(kept_, "save");
    Training training(train_step_, kept_weights_);
    auto& state = loop_.state();
    train::save_training(
        path, training,
        {loop_.position_for_file(training), state.history(), state.callback_state(), kept_, state.callback_failure()});
  }
  /// Writes the weights alone, which a Predictor and load_weights read. A call of this rank alone, which has the whole model
  /// under every policy but a Pipeline. Throws FileError.
  void save_weights(const std::string& path) const {
    static_assert(!parallel::SplitsModel<typename TrainStep::PolicyState>,
                  "trainer.save_weights(path): under a Pipeline no rank has the whole model: all ranks call trainer.save(path)");
    prepared_.note_missing(kept_, "save_weights");
    if constexpr (!parallel::SplitsModel<typename TrainStep::PolicyState>) train::save_weights(path, model(), kept_);
  }
  /// Reads what save() wrote; every rank reads the file itself. Throws FileError for a file of another network, optimizer or
  /// scalar type, and for a damaged one. Where one rank cannot read its file, the others throw CommError, as all do where files
  /// differ. Nothing is changed then, on any rank.
  void load(const std::string& path) {
    const comm::InPublicCall here(comm::PublicCall::load);
    const train::ModelInFit not_in_fit(&model());
    policy_state().barrier();  // who has not called this is named
    Training training(train_step_, kept_weights_);
    train::LoadedTraining loaded;
    const auto read = [&](const train::FileRead& before_change) {
      loaded = train::load_training(path, training, train::Verify::Whole, before_change);
    };
    if constexpr (several) train::read_on_all_ranks("load", policy_state(), path, read);
    else read({});
    training.start_again();
    std::swap(kept_, loaded.records.kept);
    prepared_.forget_fit();
    loop_.resume(training, std::move(loaded.records));
  }

  /// The weights of a file alone, without the optimizer's state and the place in the data; where all are taken, also what is kept
  /// beside them and not kept here. A call of all ranks, each of which reads the file; under a Pipeline the stages take their
  /// own. Throws FileError, with all names that do not match, for a file of another network. Where one rank cannot read its
  /// file, all throw. Nothing is changed then, on any rank.
  void load_weights(const std::string& path, const LoadOptions& options = {}) {
    const comm::InPublicCall here(comm::PublicCall::load_weights);
    const train::ModelInFit not_in_fit(&model());
    policy_state().barrier();  // who has not called this is named
    train::KeptObjects beside;
    const auto read = [&](const train::FileRead& before_change) {
      if constexpr (parallel::SplitsModel<typename TrainStep::PolicyState>)
        (void)train::scatter_weights(path, train_step_, options, &beside, before_change);
      else (void)train::load_weights(path, model(), options, &beside, before_change);
    };
    if constexpr (several) train::read_on_all_ranks("load_weights", policy_state(), path, read);
    else read({});
    if (options.whole()) kept_.add_missing(beside), prepared_.forget_fit();
    const auto lease = model().modify();
    policy_state().start();
  }

  /// Steps that were left out so far since their loss was no finite number: see FitOptions::on_nan.
  std::int64_t left_out() const { return loop_.left_out(); }
  /// Puts an object with serialize() into every file that save() writes from now on: what prepared the data, names of classes.
  /// The object is copied. A Predictor of the file has it again: predictor.kept<T>(name). load() replaces all that is kept.
  template <class T> void keep(const std::string& name, const T& object) {
    kept_.set(name, object);
    prepared_.check_kept(kept_, policy_state().rank());
  }
  /// Under the name that its type has: a data::TableEncoder, which Predictor::predict(table) then uses.
  template <class T> void keep(const T& object) { keep(std::string(T::kept_as), object); }
  template <class T> T kept(std::string_view name = T::kept_as) const { return kept_.template get<T>(name); }

  /// The parts under fit: train step, executor, optimizer, policy state.
  TrainStep& train_step() { return train_step_; }
  Model& model() const { return train_step_.model(); }

 private:
  using Training = train::detail::FittedTrainingOf<TrainStep>;

  auto& policy_state() {
    calls_.check_there();
    return train_step_.policy_state();
  }
  static constexpr bool several = train::may_have_others<typename TrainStep::PolicyState>;
  /// One collective, before anything else is: whatever would make ranks train with other weights, samples or steps is named.
  void agree_on_fit([[maybe_unused]] const data::DatasetView& train, [[maybe_unused]] const FitOptions& options) {
    if constexpr (several) {
      train::Agreement own{.trains = !policy_state().serves()};
      train::describe(options, own.all), train::describe_weights(train_step_, loop_.same_at(), own.all);
      train::describe(Model::program.layers(), Model::program.parts(), own.all);
      optim::describe(train_step_.optimizer().optimizer(), own.all);
      train::describe(optim::groups_of(train_step_.optimizer().optimizer()), own.all);
      nn::describe(train_step_.loss(), own.all);
      own.training.add(".validate", options.validate ? "a data set" : "nothing");
      train::describe(train, "training", options.loader.partition == data::Partition::shared, own.training);
      own.own_part = train::hash_of_part(train, options, policy_state().same_weights());
      train::describe(options.validate, "validation", true, own.training);
      train::describe(loop_.state().position(), train_step_.steps(), own.training);
      loop_.state().describe(options.seed, model().seed(), own.training);
      train::agree("fit", policy_state(), own);
    }
  }
  /// Who has not called this is named, and what would make ranks evaluate other samples. Servers have no part in it.
  void agree_on_evaluation([[maybe_unused]] const data::DatasetView& data, [[maybe_unused]] const EvaluateOptions& options) {
    if constexpr (several && !parallel::ServesUpdates<typename TrainStep::PolicyState>) {
      train::Agreement own;
      train::describe(options, own.training);
      train::describe(data, "evaluated", true, own.training);
      train::agree("evaluate", policy_state(), own);
    } else {
      policy_state().barrier();
    }
  }
  /// The fit of a rank that serves: its history is empty.
  History serve([[maybe_unused]] const FitOptions& options) {
    if constexpr (parallel::ServesUpdates<typename TrainStep::PolicyState>) {
      std::int64_t first = loop_.first_step_of_loaded();  // else that of the first gradients that come
      const auto factor = [&](std::int64_t step) { return options.schedule(step - (first < 0 ? first = step : first)); };
      train::check_interrupt(options.interrupt);
      train::SignalWatch signals(options.interrupt, 1, train::SignalWatch::Ends::soon);
      train_step_.serve(factor, options.clip_norm, [&] { return signals.received(); });
      const int signal = policy_state().signal();
      if (signal != 0) signals.taken();
      Training training(train_step_, kept_weights_);
      training.finish(0), training.compare_weights("at the end of fit"), training.take_kept_weights(), loop_.state().served();
      if (signal != 0) (void)policy_state().texts_of_all({}), train::leave_served(signal);  // all together
    }
    return {};
  }

  void reserve_for_prediction(long n) { loop_.reserve_for_prediction(Training(train_step_, kept_weights_), n); }

  /// forward(batch, to): the outputs of a batch, dense.
  auto forward() {
    return [this](const auto& batch, Scalar* to) {
      const comm::InPublicCall call(comm::PublicCall::predict);  // of a pipeline all ranks
      (void)train_step_.evaluate(batch);
      [[maybe_unused]] const auto here = train_step_.step_memory().enter();
      ops::copy_rows<Device>(to, TrainStep::Width, train_step_.outputs(), TrainStep::OutputPitch, batch.count, TrainStep::Width);
    };
  }

  train::detail::StepPolicy<Policy> policy_;
  TrainStep train_step_;
  OneThread calls_;
  train::detail::FitLoop<Scalar> loop_;
  train::KeptObjects kept_;
  train::WeightsCopy<TrainStep> kept_weights_;  // of the fit that is going on, that was loaded, or the last: a file goes on
  train::Preparation prepared_;
};

/// What is missing, or no policy, is said in one sentence.
template <class Model> Trainer(Model&) -> Trainer<Model, train::detail::Missing, train::detail::Missing>;
template <class Model, class Loss> Trainer(Model&, Loss) -> Trainer<Model, Loss, train::detail::Missing>;
template <class Model, class Loss, class Optimizer, class Comm>
requires Communicator<std::remove_cvref_t<Comm>> Trainer(Model&, Loss, Optimizer, Comm&&)
->Trainer<Model, Loss, Optimizer, train::detail::NotAPolicy<std::remove_cvref_t<Comm>>>;

SKEIN_END_COLD

}  // namespace skein::inline SKEIN_ABI
