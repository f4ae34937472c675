// SPDX-License-Identifier: Apache-2.0
// A metric of one's own over all samples at once: a rank correlation, a quantile of the errors, an F1 at the best threshold. What
// is a sum over samples needs less memory as an OwnMetric.
#pragma once
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "../metric.hpp"
#include "accuracy.hpp"

namespace skein::inline SKEIN_ABI::train {

/// AllSamples{"median error", [](Rows<double> outputs, Rows<double> targets) { return ...; }}, or with (outputs, Labels labels):
/// called once an evaluation, with all samples in the order of the data set, those of all ranks too. Keeps them all, as doubles.
template <class Function> class AllSamples {
  static constexpr bool by_label = std::is_invocable_r_v<double, const Function&, Rows<double>, Labels>;
  static constexpr bool by_target = std::is_invocable_r_v<double, const Function&, Rows<double>, Rows<double>>;
  static_assert(by_label || by_target,
                "the function of train::AllSamples takes (train::Rows<double> outputs, train::Labels labels) or (outputs, "
                "train::Rows<double> targets) and returns a number");

 public:
  AllSamples(std::string name, Function function) : name_(std::move(name)), function_(std::move(function)) {}
  std::string_view name() const { return name_; }

  template <class Scalar> void add(Rows<Scalar> outputs, Labels labels) requires by_label {
    detail::check_labels(outputs.count, labels.size(), name_.c_str());
    width_ = outputs.width, values_ = 1;
    for (long i = 0; i < outputs.count; ++i) {
      keep(outputs[i]);
      samples_.push_back(labels[static_cast<std::size_t>(i)]);
    }
  }
  template <class Scalar> void add(Rows<Scalar> outputs, Rows<Scalar> targets) requires by_target {
    if (outputs.count != targets.count) detail::check_targets(outputs, targets, name_.c_str());
    width_ = outputs.width, values_ = targets.width;
    for (long i = 0; i < outputs.count; ++i) {
      keep(outputs[i]);
      keep(targets[i]);
    }
  }
  void begin(int outputs, int values) {
    samples_.clear();
    width_ = outputs, values_ = values == 0 ? 1 : values;
  }
  std::vector<double>& samples() { return samples_; }
  /// NaN before the first sample.
  double value() const {
    const long pitch = width_ + values_;
    if (samples_.empty()) return std::nan("");
    const long count = static_cast<long>(samples_.size()) / pitch;
    const Rows<double> outputs{samples_.data(), pitch, count, width_};
    if constexpr (by_label) {
      std::vector<std::int32_t> labels;
      for (long i = 0; i < count; ++i)
        labels.push_back(static_cast<std::int32_t>(samples_[static_cast<std::size_t>(i * pitch + width_)]));
      return function_(outputs, Labels(labels));
    } else {
      return function_(outputs, Rows<double>{samples_.data() + width_, pitch, count, values_});
    }
  }

 private:
  template <class Scalar> void keep(std::span<const Scalar> row) {
    for (const Scalar v : row) samples_.push_back(static_cast<double>(v));
  }

  std::string name_;
  Function function_;
  int width_ = 0, values_ = 0;
  std::vector<double> samples_;  // a row each: outputs, then the label or the targets
};

}  // namespace skein::inline SKEIN_ABI::train
