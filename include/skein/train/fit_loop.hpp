// SPDX-License-Identifier: Apache-2.0
// The loop of a fit: epochs, records, callbacks, the progress line, validation. It is compiled once, not once a network: what it
// asks of a training are a few virtual functions (FitSteps), called once a step or less often; what a step does itself is behind
// them.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../data/loader.hpp"
#include "../nn/executor_options.hpp"
#include "clock.hpp"
#include "history.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "step_options.hpp"
#include "training_position.hpp"

namespace skein::inline SKEIN_ABI::train::detail {

/// What the loop knows of a training beforehand.
struct FitFacts {
  int rank = 0, ranks = 1, local_ranks = 1;  ///< of the policy; how many share a machine
  int part = 0, parts = 1;                   ///< of a batch: the ranks of a pipeline have one part together
  bool scores = true;                        ///< this rank has its part's outputs: of a pipeline, its last stage
  int virtual_shards = 0;                    ///< of a policy that has such
  bool local_sums = false;                   ///< a step's sums are of this rank alone
  bool labels = false;                       ///< the loss compares with labels, and accuracy is counted
  long labels_each = 1;                      ///< answers that a sample is asked for
  int threads = 1;                           ///< workers of this rank, where the options do not say
  Seed seed{};                               ///< the model's
  data::LoaderOptions loader{};              ///< how the device likes its batches
};

/// What the loop asks of a training: the train step, the policy's state, the optimizer. Functions that may change the
/// parameters announce it to the model.
template <class Scalar> class FitSteps {
 public:
  virtual FitFacts facts() = 0;
  /// Makes memory for batches of so many samples; and whatever layers want beforehand for one of `count`.
  virtual void reserve(const ExecutorOptions& options) = 0;
  virtual void prepare(long count) = 0;
  /// Of the largest batch that there is memory for; 0 before reserve().
  virtual long capacity() = 0;
  virtual void step(const data::Batch<Scalar>& batch, const StepOptions& options) = 0;
  /// Forward and loss alone; `more`: the sums are those of the calls before too.
  virtual void evaluate(const data::Batch<Scalar>& batch, bool more) = 0;
  /// Of the last step, or evaluation. A device is waited for.
  virtual nn::LossSums sums() = 0;
  /// Gives the metrics the outputs of the batch that has been evaluated.
  virtual void feed(std::span<AnyMetric> metrics, const data::Batch<Scalar>& batch) = 0;
  /// The sums of the epoch. A device is waited for.
  virtual nn::LossSums totals() = 0;
  virtual void set_totals(const nn::LossSums& sums) = 0;
  virtual std::int64_t steps() = 0;     ///< of the optimizer
  virtual double rate() = 0;            ///< the optimizer's, without the schedule
  virtual std::string_view note() = 0;  ///< why a step is not what it could be
  virtual void epoch_begins(std::int64_t number) = 0;
  virtual void epoch_ends(std::int64_t number) = 0;
  virtual void finish() = 0;
  virtual void average_buffers() = 0;
  virtual void reduce(std::span<double> values) = 0;
  virtual double exposed_seconds() = 0;

 protected:
  ~FitSteps() = default;
};

/// The sums of all ranks. State: a policy's, or FitSteps.
template <class State> nn::LossSums sum_over_ranks(State& state, const nn::LossSums& own) {
  double all[3] = {own.loss, own.weight, own.correct};
  state.reduce(all);
  return {all[0], all[1], all[2]};
}

/// A training's epochs, over one or more calls of fit.
template <class Scalar> class FitLoop {
 public:
  using Steps = FitSteps<Scalar>;

  /// Trains until options.epochs epochs are done, or a callback stops it. Returns the history.
  History run(Steps& steps, data::DatasetView train, const FitOptions& options);
  /// Loss, accuracy and metrics over a data set, summed over all ranks.
  Scores evaluate(Steps& steps, data::DatasetView data, EvaluateOptions& options);
  /// For predicting n samples: computed as the last fit was.
  ExecutorOptions memory_for_prediction(long n) const;
  /// Of a rank that serves: its fit is over.
  void served() { place_.running = false; }

  /// Where the training stands. Within an epoch, its sums are the train step's.
  const TrainingPosition& position() const { return place_; }
  bool within_epoch() const { return fitting_; }
  const History& history() const { return history_; }
  /// The callbacks' states: of the fit that is going on, else as they were kept or loaded.
  const std::string& callback_state();
  /// Goes on from there at the next run().
  void resume(const TrainingPosition& place, const History& history, const std::string& callbacks);

 private:
  struct Work;
  struct Forget;

  data::LoaderOptions loader_options(Steps& steps, const data::DatasetView& train, const FitOptions& options);
  data::LoaderOptions evaluation_options(long batch) const;
  void reserve(Steps& steps, data::Loader<Scalar>& loader, data::Loader<Scalar>* validation, const FitOptions& options);
  void keep_callbacks();
  void begin(data::Loader<Scalar>& loader);
  void epoch(Work& work);
  bool after_step(Work& work, const data::Batch<Scalar>& batch);
  void record_step(Work& work, const data::Batch<Scalar>& batch);
  void show(Work& work, double now);
  void end_epoch(Work& work);
  void agree(Steps& steps, Control& control) const;
  Scores evaluate(Steps& steps, data::Loader<Scalar>& loader, std::vector<AnyMetric>& metrics);

  FitFacts facts_{};
  TrainingPosition place_{};
  History history_{};  // of the fit that is going on
  Seed seed_{};
  std::vector<std::int64_t> shard_sizes_;
  ExecutorOptions memory_{};        // of the last fit
  Callbacks* callbacks_ = nullptr;  // of the fit that is going on
  std::string callback_state_;      // of a loaded training, until its fit begins
  bool resumed_ = false, continues_ = false;
  bool fitting_ = false;  // within an epoch: its sums are the train step's
  bool noted_ = false;
};

#if SKEIN_COMPILED
extern template class FitLoop<float>;
extern template class FitLoop<double>;
#endif

}  // namespace skein::inline SKEIN_ABI::train::detail

#if !SKEIN_COMPILED
#include "fit_loop.ipp"
#endif
