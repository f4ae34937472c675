// SPDX-License-Identifier: Apache-2.0
// The loop of a fit: epochs, records, callbacks, the progress line, validation. It is compiled once, not once a network: what it
// asks of a training are a few virtual functions (FittedTraining), called once a step or less often; what a step does itself is
// behind them.
#pragma once
#include <cstdint>
#include <string>

#include "fitted_training.hpp"
#include "fit_state.hpp"
#include "options.hpp"

namespace skein::inline SKEIN_ABI::train::detail {

template <class Scalar> struct FitWork;

/// A training's epochs, over one or more calls of fit.
template <class Scalar> class FitLoop {
 public:
  using Training = FittedTraining<Scalar>;

  /// Trains until options.epochs epochs are done, or a callback stops it. Returns the history. With `.checkpoint` it begins with
  /// the newest commit of the folder, whose objects become `kept`.
  History run(Training& training, data::DatasetView train, const FitOptions& options, KeptObjects& kept);
  /// Loss, accuracy and metrics over a data set, summed over all ranks.
  Scores evaluate(EvaluatedTraining<Scalar>& training, data::DatasetView data, EvaluateOptions& options);
  /// Memory for predicting n samples, or for 256 of them at a time: what a fit or an evaluation has made serves as it is.
  /// Computed as the last fit was.
  void reserve_for_prediction(Training&& training, long n);
  /// Optimizer steps before the loaded fit, which goes on; -1 where none was loaded.
  std::int64_t first_step_of_loaded() const { return state_.goes_on() ? state_.position().first_step : -1; }

  /// What stays between fits. Within an epoch, the sums of its position are the train step's.
  FitState& state() { return state_; }
  const FitState& state() const { return state_; }
  /// The position with the sums of all ranks, within a fit after what callbacks have asked for so far was done, since it is saved
  /// with their states. A call of all ranks.
  TrainingPosition position_for_file(Training& training);
  /// Goes on from there at the next run().
  void resume(Training& training, FileRecords&& records);
  /// Callbacks are told that a fit has ended, which has not returned.
  bool in_fit_end() const { return kept_ && !work_; }
  /// The optimizer's steps in all when a fit has last ended on all ranks, which a policy may promise to have the same weights
  /// then; 0 before the first, -1 where a training was loaded since: a rank may have taken weights of its own.
  std::int64_t same_at() const { return same_at_; }
  /// Steps that were not made since their loss was no finite number.
  std::int64_t left_out() const { return left_out_; }

 private:
  using Work = FitWork<Scalar>;
  struct Forget;

  History epochs(Work& work, std::int64_t count);
  void epoch(Work& work);
  History end(Work& work);
  bool after_step(Work& work, const StepSamples& samples);
  void record_step(Work& work, const StepSamples& samples);
  void end_epoch(Work& work);
  void end_loaded_epoch(Work& work);
  bool nothing_to_do(Training& training, const FitOptions& options);
  bool go_on(Training& training, const data::DatasetView& train, int epochs, KeptObjects& kept);
  void compare_weights(Work& work, const std::string& when);
  void compare_and_commit(Work& work);
  void commit(Work& work);
  TrainingPosition position_of_all(Training& training);
  int epoch_number() const { return state_.epoch_number(); }
  TrainingPosition& position() { return state_.position(); }
  History& history() { return state_.history(); }

  FitFacts facts_{};
  FitState state_;
  ExecutorOptions executor_options_{};  // of the last fit
  long predicted_ = 0;                  // samples for which predictions have made memory; 0: a fit or an evaluation has
  bool noted_ = false;                  // the train step's note was shown
  std::int64_t left_out_ = 0, same_at_ = 0;
  Work* work_ = nullptr;               // of the fit that is going on
  FitCommits::Pointer commits_;        // the same
  const KeptObjects* kept_ = nullptr;  // the same
};

#if SKEIN_COMPILED
extern template class FitLoop<float>;
extern template class FitLoop<double>;
#endif

}  // namespace skein::inline SKEIN_ABI::train::detail

#if !SKEIN_COMPILED
#include "fit_loop.ipp"
#endif
