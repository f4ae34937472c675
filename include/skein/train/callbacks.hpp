// SPDX-License-Identifier: Apache-2.0
// The callbacks that come with the library: early stopping, best model, reduction of the rate on a plateau, learning-rate log,
// time limit. Each is a value that one can write oneself in as many lines.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "../core/clock.hpp"
#include "../core/error.hpp"
#include "../core/atomic_file.hpp"
#include "callback.hpp"
#include "fit_control.hpp"
#include "records.hpp"
#include "text.hpp"
#include "watch.hpp"

namespace skein::inline SKEIN_ABI::train {

/// Stops when the watched value has not become better by more than least_change for `patience` epochs in a row. With
/// `.restore_best = true` the model has the weights of the best epoch when fit returns, whatever stopped it.
struct EarlyStopping {
  int patience = 3;
  Watch watch{};  ///< as it comes: the validation loss, else the training loss
  double least_change = 0;
  bool restore_best = false;

  void check_options() const;
  void on_epoch_end(EpochRecord& epoch, FitControl& control);
  bool keeps_weights() const { return restore_best; }
  static std::string saved_as() { return "EarlyStopping"; }
  template <class Archive> void serialize(Archive& archive, unsigned) { (archive & best); }

  BestValue best{};  // state
};

/// Calls a function at the end of every epoch that is the best so far: best_model([&](const EpochRecord&) { trainer.save("best");
/// }).
template <class Function> struct BestModel {
  Function function;
  Watch watch{};

  void on_epoch_end(EpochRecord& epoch, FitControl&) {
    if (best.improved_by(epoch, watch, 0, "best_model")) function(epoch);
  }
  static std::string saved_as() { return "best_model"; }
  template <class Archive> void serialize(Archive& archive, unsigned) { (archive & best); }

  BestValue best{};  // state
};
/// A callback that calls `function` when the watched value is the best so far: as it comes, the validation loss, else the
/// training loss.
template <class Function> BestModel<Function> best_model(Function function, Watch watch = {}) {
  return {std::move(function), std::move(watch)};
}

/// Multiplies the rate by `factor` when the watched value has not become better for more than `patience` epochs. PyTorch's
/// ReduceLROnPlateau with its defaults: `threshold` is a share of the best value, `cooldown` epochs after a reduction do not
/// count, and the product of all factors does not fall below `least_factor`.
struct ReduceOnPlateau {
  double factor = 0.1;
  int patience = 10;
  Watch watch{};
  double threshold = 1e-4;
  int cooldown = 0;
  double least_factor = 0;

  void check_options() const;
  void on_epoch_end(EpochRecord& epoch, FitControl& control);
  static bool keeps_weights() { return false; }
  static std::string saved_as() { return "ReduceOnPlateau"; }
  template <class Archive> void serialize(Archive& archive, unsigned) { (archive & best & bad_epochs & cooling); }

  BestValue best{};  // state
  int bad_epochs = 0, cooling = 0;
};

/// Keeps the learning rate of every step at which it changed. Hand it over by std::ref to read it afterwards.
struct LearningRateLog {
  static constexpr bool is_read_afterwards = true;
  std::vector<std::pair<std::int64_t, double>> rates;  // (step, rate from this step on)

  void on_step_end(const StepRecord& step, FitControl&);
  void write_csv(const std::string& path) const;
  static bool keeps_weights() { return false; }
  static std::string saved_as() { return "LearningRateLog"; }
  template <class Archive> void serialize(Archive& archive, unsigned) { (archive & rates); }
};

/// Stops before a limit of wall time (a batch system's): as soon as the longest step so far would not fit any more, or, with
/// whole_epochs, the longest epoch. The time of an earlier process does not count. A fit refuses a limit that is not above 0.
struct TimeLimit {
  double seconds = 0;
  bool whole_epochs = false;
  double (*now)() = +[] { return seconds_now(); };

  static bool keeps_weights() { return false; }
  void check_options() const;
  void on_fit_begin(FitControl&) { start = last = last_epoch = now(); }
  void on_step_end(const StepRecord&, FitControl& control);
  void on_epoch_end(const EpochRecord&, FitControl& control);

  double start = 0, last = 0, last_epoch = 0, longest = 0;  // state

 private:
  void check(double& before, double& most, const char* what, FitControl& control) const;
};

}  // namespace skein::inline SKEIN_ABI::train

#if !SKEIN_COMPILED
#include "callbacks.ipp"
#endif
