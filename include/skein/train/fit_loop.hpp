// SPDX-License-Identifier: Apache-2.0
// The loop of a fit: epochs, records, callbacks, the progress line, validation. It is compiled once, not once a network: what it
// asks of a training are a few virtual functions (FitSteps), called once a step or less often; what a step does itself is behind
// them.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../core/clock.hpp"
#include "../core/named_values.hpp"
#include "fit_facts.hpp"
#include "history.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "training_position.hpp"

namespace skein::inline SKEIN_ABI::train {
struct FileRecords;
}

namespace skein::inline SKEIN_ABI::train::detail {

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

  /// Trains until options.epochs epochs are done, or a callback stops it. Returns the history. With `.checkpoint` it begins with
  /// the newest commit of the folder, whose objects become `kept`.
  History run(Steps& steps, data::DatasetView train, const FitOptions& options, KeptObjects& kept);
  /// Loss, accuracy and metrics over a data set, summed over all ranks.
  Scores evaluate(Steps& steps, data::DatasetView data, EvaluateOptions& options);
  /// For predicting n samples: computed as the last fit was.
  ExecutorOptions memory_for_prediction(long n) const;
  /// Of a rank that serves: its fit is over.
  void served() { place_.running = resumed_ = false; }
  /// Optimizer steps before the loaded fit, which goes on; -1 where none was loaded.
  std::int64_t first_step_of_loaded() const { return resumed_ && goes_on() ? place_.first_step : -1; }

  /// What ranks compare of the seed, and of whether a loaded training goes on.
  void describe(const FitOptions& options, Seed of_model, NamedValues& to) const;
  /// Where the training stands. Within an epoch, its sums are the train step's.
  const TrainingPosition& position() const { return place_; }
  /// The same with the sums of all ranks. A call of all of them.
  TrainingPosition position_for_file(Steps& steps) const;
  /// Steps that were not made since their loss was no finite number.
  std::int64_t left_out() const { return left_out_; }
  const History& history() const { return history_; }
  /// The callbacks' states: of the fit that is going on, else as they were kept or loaded.
  const std::string& callback_state();
  /// Why callback_state() is not of now: what the serialize() of a callback threw, which all ranks hear when rank 0 writes.
  const std::string& callback_failure() const { return callback_failure_; }
  /// Goes on from there at the next run().
  void resume(Steps& steps, FileRecords&& records);

 private:
  struct Work;
  struct Forget;

  data::LoaderOptions loader_options(Steps& steps, const data::DatasetView& train, const FitOptions& options);
  data::LoaderOptions validation_options(long batch, const FitOptions& options) const;
  /// Threads that compute on this machine, all ranks'.
  int busy_threads(const FitOptions& options) const {
    return (options.threads > 0 ? options.threads : facts_.threads) * facts_.local_ranks;
  }
  void reserve(Steps& steps, data::Loader<Scalar>& loader, data::Loader<Scalar>* validation, const FitOptions& options);
  void keep_callbacks();
  void load_callbacks(Callbacks& callbacks) const;
  void begin_callbacks(Work& work);
  bool goes_on() const { return place_.running || place_.epoch > 0; }
  Seed seed_of(const FitOptions& options, Seed of_model) const;
  EpochOrder order_of(const data::Loader<Scalar>& loader, const FitOptions& options) const;
  void begin(Steps& steps, data::Loader<Scalar>& loader, const FitOptions& options);
  void epoch(Work& work);
  History end(Work& work);
  bool after_step(Work& work, const data::Batch<Scalar>& batch);
  void record_step(Work& work, const data::Batch<Scalar>& batch);
  void show(Work& work, double now);
  void end_epoch(Work& work);
  void end_loaded_epoch(Work& work);
  void agree(Work& work);
  void stop_at_signal(Work& work, const double* of_all);
  void look_for_signal(Work& work);
  [[noreturn]] void leave(Work& work);
  bool nothing_to_do(const FitOptions& options);
  void go_on(Steps& steps, const data::DatasetView& train, KeptObjects& kept);
  void compare_weights(Work& work, const std::string& when);
  void compare_and_commit(Work& work);
  void commit(Work& work);
  int epoch_number() const { return static_cast<int>(place_.base + place_.epoch) + 1; }

  FitFacts facts_{};
  TrainingPosition place_{};
  History history_{};  // of the fit that is going on
  Seed seed_{}, loaded_seed_{};
  std::vector<std::int64_t> shard_sizes_;
  ExecutorOptions memory_{};        // of the last fit
  Callbacks* callbacks_ = nullptr;  // of the fit that is going on
  std::string callback_failure_;
  std::string callback_state_;    // of a loaded training, until its fit begins
  std::string loaded_optimizer_;  // the same: lines of NamedValues
  bool resumed_ = false, continues_ = false;
  bool fitting_ = false;  // within an epoch: its sums are the train step's
  bool noted_ = false;
  std::int64_t left_out_ = 0;
  FitCommits::Pointer commits_;        // of the fit that is going on
  const KeptObjects* kept_ = nullptr;  // the same
  bool from_commit_ = false;           // this fit goes on from one
};

#if SKEIN_COMPILED
extern template class FitLoop<float>;
extern template class FitLoop<double>;
#endif

}  // namespace skein::inline SKEIN_ABI::train::detail

#if !SKEIN_COMPILED
#include "fit_loop.ipp"
#endif
