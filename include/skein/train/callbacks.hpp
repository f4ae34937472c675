// SPDX-License-Identifier: Apache-2.0
// The callbacks that come with the library: early stopping, best model, learning-rate log, time limit. Each is a value that
// one can write oneself in as many lines.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "atomic_file.hpp"
#include "callback.hpp"
#include "clock.hpp"
#include "control.hpp"
#include "records.hpp"
#include "text.hpp"

namespace skein::inline SKEIN_ABI::train {

/// What a callback looks at, and which direction is better.
enum class Watch { ValidationLoss, ValidationAccuracy, TrainingLoss, TrainingAccuracy };

/// The watched value, turned so that greater is better. NaN counts as the worst. Throws ArgumentError where it was not measured
/// at all because there is no validation set.
double merit(const EpochRecord& epoch, Watch watch);

/// Stops when the watched value has not become better by more than least_change for `patience` epochs in a row.
struct EarlyStopping {
  int patience = 3;
  Watch watch = Watch::ValidationLoss;
  double least_change = 0;

  void on_epoch_end(EpochRecord& epoch, Control& control);
  template <class Archive> void serialize(Archive& archive, unsigned) { (archive & best & best_epoch); }

  double best = 0;  // state
  int best_epoch = 0;
};

/// Calls a function at the end of every epoch that is the best so far: best_model([&](const EpochRecord&) { trainer.save("best");
/// }).
template <class Function> struct BestModel {
  Function function;
  Watch watch = Watch::ValidationAccuracy;

  void on_epoch_end(EpochRecord& epoch, Control&) {
    const double now = merit(epoch, watch);
    if (best_epoch != 0 && !(now > best)) return;
    best = now;
    best_epoch = epoch.epoch;
    function(epoch);
  }
  template <class Archive> void serialize(Archive& archive, unsigned) { (archive & best & best_epoch); }

  double best = 0;  // state
  int best_epoch = 0;
};
/// A callback that calls `function` when the watched value is the best so far, and keeps that epoch's number.
template <class Function> BestModel<Function> best_model(Function function, Watch watch = Watch::ValidationAccuracy) {
  return {std::move(function), watch};
}

/// Keeps the learning rate of every step at which it changed. Hand it over by std::ref to read it afterwards.
struct LearningRateLog {
  std::vector<std::pair<std::int64_t, double>> rates;  // (step, rate from this step on)

  void on_step_end(const StepRecord& step, Control&);
  void write_csv(const std::string& path) const;
  template <class Archive> void serialize(Archive& archive, unsigned) { (archive & rates); }
};

/// Stops before a limit of wall time (a batch system's): as soon as the longest step so far would not fit any more, or, with
/// whole_epochs, the longest epoch. The time of an earlier process does not count.
struct TimeLimit {
  double seconds = 0;
  bool whole_epochs = false;
  double (*now)() = +[] { return seconds_now(); };

  void on_fit_begin(Control&) { start = last = last_epoch = now(); }
  void on_step_end(const StepRecord&, Control& control);
  void on_epoch_end(EpochRecord&, Control& control);

  double start = 0, last = 0, last_epoch = 0, longest = 0;  // state

 private:
  void check(double& before, double& most, const char* what, Control& control) const;
};

}  // namespace skein::inline SKEIN_ABI::train

#if !SKEIN_COMPILED
#include "callbacks.ipp"
#endif
