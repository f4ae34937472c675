// SPDX-License-Identifier: Apache-2.0
// The figures of a fit, as its records and its progress line have them: seconds, samples a second, the share of the time in which
// ranks wait for an exchange that nothing hides.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "../core/clock.hpp"
#include "fitted_training.hpp"
#include "progress.hpp"
#include "records.hpp"
#include "training_position.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train::detail {

/// Epochs of all fits, where this one has so many: the progress line's last number. A bound may be the largest int.
inline int epochs_in_all(std::int64_t before, int epochs) {
  return static_cast<int>(std::min<std::int64_t>(before + epochs, std::numeric_limits<int>::max()));
}

/// The figures of one fit on one rank.
template <class Scalar> class FitFigures {
 public:
  FitFigures(FittedTraining<Scalar>& training, const FitFacts& facts) : training_(training), facts_(facts) {}

  /// The first step is next.
  void begin(double now) { start_ = last_ = now, last_exposed_ = training_.exposed_seconds(); }
  /// `samples`: that were before, of all ranks, where an epoch goes on.
  void begin_epoch(std::int64_t samples) {
    epoch_ = seconds_now(), exposed_ = training_.exposed_seconds();
    own_ = samples / facts_.parts, before_ = samples;
  }
  void count_step() { ++steps_done_; }
  void count_own(std::int64_t samples) { own_ += samples; }

  /// The record of the training in an epoch that ends, with the sums of all ranks.
  EpochRecord epoch(const TrainingPosition& at, const nn::LossSums& sums, double factor) const {
    EpochRecord record;
    record.epoch = static_cast<int>(at.base + at.epoch) + 1;
    record.step = training_.steps();
    record.training.loss = mean_of(sums);
    if (facts_.labels && at.samples > 0) record.training.accuracy = accuracy(sums, at.samples);
    record.learning_rate = training_.rate() * factor;
    const double trained = seconds_of_epoch();
    if (at.samples > before_) record.samples_per_second = static_cast<double>(at.samples - before_) / trained;
    record.exposed_communication = (training_.exposed_seconds() - exposed_) / trained;
    return record;
  }
  double seconds_of_epoch() const { return seconds_now() - epoch_; }

  /// The record of a step of these samples. Its time is that since the record before, and its exposed share is of that time.
  StepRecord step(const nn::LossSums& sums, const StepSamples& samples, int epoch, double factor) {
    const double now = seconds_now(), before = std::exchange(last_, now);
    StepRecord record;
    record.step = training_.steps();
    record.epoch = epoch;
    record.loss = mean_of(sums);
    if (facts_.labels) record.accuracy = accuracy(sums, facts_.local_sums ? samples.own : samples.all);
    record.learning_rate = training_.rate() * factor;
    record.seconds = now - before;
    record.samples_per_second = static_cast<double>(samples.all) / record.seconds;
    const double exposed = training_.exposed_seconds();
    record.exposed_communication = (exposed - std::exchange(last_exposed_, exposed)) / std::max(1e-9, record.seconds);
    return record;
  }
  /// When the last step was recorded.
  double last() const { return last_; }

  /// Where the training stands in an epoch of so many steps, of a fit of so many epochs.
  ProgressState progress(const TrainingPosition& at, std::int64_t steps, int epochs, double now) const {
    ProgressState state;
    state.epoch = static_cast<int>(at.base + at.epoch) + 1;
    state.epochs = epochs_in_all(at.base, epochs);
    state.step = at.step;
    state.steps = steps;
    state.loss = at.sums.mean();
    if (facts_.labels) state.accuracy = accuracy(at.sums, facts_.local_sums ? own_ : at.samples);
    const double passed = std::max(1e-9, now - epoch_);
    state.samples_per_second = static_cast<double>(at.samples - before_) / passed;
    if (facts_.ranks > 1) state.exposed_communication = (training_.exposed_seconds() - exposed_) / passed;
    const std::int64_t left = (epochs - at.epoch) * steps - at.step;
    state.seconds_left = seconds_left(now - start_, steps_done_, steps_done_ + left);
    return state;
  }

 private:
  /// Without a step, or with no label that counts, there is none: 0 would be the best loss.
  static double mean_of(const nn::LossSums& sums) { return sums.weight > 0 ? sums.mean() : not_measured; }
  /// The share of correct answers among the labels that count: where the loss ignores one, the sums know their number.
  double accuracy(const nn::LossSums& sums, std::int64_t samples) const {
    const double asked = facts_.weight_counts ? sums.weight : static_cast<double>(samples * facts_.labels_each);
    return asked > 0 ? sums.correct / asked : not_measured;
  }

  FittedTraining<Scalar>& training_;
  const FitFacts& facts_;
  double start_ = 0, last_ = 0;            // seconds: the fit's begin, the last recorded step
  double epoch_ = 0, exposed_ = 0;         // the epoch's begin, exposed seconds until then
  double last_exposed_ = 0;                // exposed seconds until the last recorded step
  std::int64_t steps_done_ = 0, own_ = 0;  // of the fit; this rank's samples of the epoch so far
  std::int64_t before_ = 0;                // samples of the epoch that a fit before this one has trained on
};

}  // namespace skein::inline SKEIN_ABI::train::detail

SKEIN_END_COLD
