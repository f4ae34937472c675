// SPDX-License-Identifier: Apache-2.0
// What is written down about a training: Scores of a pass over data, EpochRecord of an epoch, StepRecord of a step. Plain
// values of a fixed size, so that recording allocates nothing in the middle of a training; what was not measured is NaN.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "../core/error.hpp"

namespace skein::inline SKEIN_ABI::train {

/// The value of a field that nobody measured.
inline constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();

/// Loss, accuracy and further metrics by name, of one pass over a data set.
class Scores {
 public:
  static constexpr int most_metrics = 6;
  static constexpr std::size_t longest_name = 24;

  double loss = not_measured;
  double accuracy = not_measured;  // share in [0, 1]

  /// Whether anything was measured: false for the validation of a training without one.
  bool measured() const { return loss == loss || accuracy == accuracy; }

  /// The metric of this name. Throws ArgumentError that lists the names there are.
  double operator[](std::string_view name) const;
  /// Adds a metric, or replaces the one of this name (cut to 24 characters). Throws ArgumentError beyond six.
  void set(std::string_view name, double value);
  int metrics() const;
  std::string_view metric_name(int i) const { return metrics_[static_cast<std::size_t>(i)].name(); }
  double metric_value(int i) const { return metrics_[static_cast<std::size_t>(i)].value; }

  template <class Archive> void serialize(Archive& archive, unsigned) { (archive & loss & accuracy & metrics_); }

 private:
  struct Metric {
    std::array<char, longest_name> text{};
    double value = not_measured;
    std::string_view name() const;
    template <class Archive> void serialize(Archive& archive, unsigned) { (archive & text & value); }
  };
  std::array<Metric, most_metrics> metrics_{};
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
  double exposed_communication = 0;
  double seconds = 0;

  template <class Archive> void serialize(Archive& archive, unsigned) {
    (archive & step & epoch & loss & accuracy & learning_rate & samples_per_second & exposed_communication & seconds);
  }
};

}  // namespace skein::inline SKEIN_ABI::train

#if !SKEIN_COMPILED
#include "records.ipp"
#endif
