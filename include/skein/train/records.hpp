// SPDX-License-Identifier: Apache-2.0
// What is written down about a training: Scores of a pass over data, EpochRecord of an epoch, StepRecord of a step (a plain
// value, so that recording steps allocates nothing); what was not measured is NaN.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "../core/error.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

/// The value of a field that nobody measured.
inline constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();

/// Loss, accuracy and further metrics by name, of one pass over a data set.
class Scores {
 public:
  static constexpr unsigned archive_version = 1;  // before it: six metrics, names of at most 24 characters

  double loss = not_measured;
  double accuracy = not_measured;  // share in [0, 1]

  /// Whether anything was measured: false for the validation of a training without one.
  bool measured() const { return loss == loss || accuracy == accuracy; }

  /// The metric of this name. Throws ArgumentError that lists the names there are.
  double operator[](std::string_view name) const;
  /// The metric of this name; null where there is none.
  const double* find(std::string_view name) const;
  /// Adds a metric, or replaces the value of the one of this name. Throws ArgumentError for an empty name.
  void set(std::string_view name, double value);
  int metrics() const { return static_cast<int>(metrics_.size()); }
  std::string_view metric_name(int i) const { return metrics_[static_cast<std::size_t>(i)].name; }
  double metric_value(int i) const { return metrics_[static_cast<std::size_t>(i)].value; }

  template <class Archive> void serialize(Archive& archive, unsigned version) {
    (archive & loss & accuracy);
    if (version >= 1) {
      (archive & metrics_);
    } else {
      std::array<OldMetric, 6> old{};
      (archive & old);
      metrics_.clear();
      for (const OldMetric& m : old)
        if (const std::string name(m.text.data(), std::find(m.text.begin(), m.text.end(), '\0')); !name.empty())
          set(name, m.value);
    }
  }

 private:
  struct Metric {
    std::string name;
    double value = not_measured;
    template <class Archive> void serialize(Archive& archive, unsigned) { (archive & name & value); }
  };
  struct OldMetric {  // of archive version 0
    std::array<char, 24> text{};
    double value = not_measured;
    template <class Archive> void serialize(Archive& archive, unsigned) { (archive & text & value); }
  };
  std::vector<Metric> metrics_;
};

/// One epoch: the scores over it, and how fast it went.
struct EpochRecord {
  int epoch = 0;                             // from 1
  std::int64_t step = 0;                     // optimizer steps since the start of the training
  Scores training;                           // mean over the epoch, while the weights change
  Scores validation;                         // at its end; not measured() without a validation set
  double learning_rate = not_measured;       // of the last step
  double samples_per_second = not_measured;  // of all ranks together, validation left out
  double exposed_communication = 0;          // share of the time in which computing waited for communication
  double seconds = 0;                        // wall time, validation included

  /// Every step of it was left out, as those whose scaled gradients overflow are.
  bool made_no_step() const { return !training.measured() && samples_per_second != samples_per_second; }

  template <class Archive> void serialize(Archive& archive, unsigned) {
    (archive & epoch & step & training & validation & learning_rate & samples_per_second & exposed_communication & seconds);
  }
};

/// One optimizer step.
struct StepRecord {
  std::int64_t step = 0;  // from 1
  int epoch = 0;          // from 1
  double loss = not_measured;
  double accuracy = not_measured;
  double learning_rate = not_measured;
  double samples_per_second = not_measured;
  double exposed_communication = 0;  // share of .seconds in which computing waited for communication
  double seconds = 0;                // wall time since the record before

  template <class Archive> void serialize(Archive& archive, unsigned) {
    (archive & step & epoch & loss & accuracy & learning_rate & samples_per_second & exposed_communication & seconds);
  }
};

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "records.ipp"
#endif
