// SPDX-License-Identifier: Apache-2.0
// A metric out of a function of one sample: the mean of what it returns.
#pragma once
#include <array>
#include <cmath>
#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "accuracy.hpp"
#include "../metric.hpp"

namespace skein::inline SKEIN_ABI::train {

/// OwnMetric{"close", [](std::span<const float> output, std::span<const float> target) { return double(...); }}, or with
/// (output, int label). A function for float serves double too where its parameters are `auto`.
template <class Function> class OwnMetric {
 public:
  OwnMetric(std::string name, Function function) : name_(std::move(name)), function_(std::move(function)) {}
  std::string_view name() const { return name_; }

  template <class Scalar> void add(Rows<Scalar> outputs, Labels labels)
    requires std::is_invocable_r_v<double, Function&, std::span<const Scalar>, int>
  {
    detail::check_labels(outputs.count, labels.size(), name_.c_str());
    for (long i = 0; i < outputs.count; ++i) {
      const int label = labels[static_cast<std::size_t>(i)];
      if (label < 0) continue;
      sums_[0] += static_cast<double>(function_(outputs[i], label));
      sums_[1] += 1;
    }
  }
  template <class Scalar> void add(Rows<Scalar> outputs, Rows<Scalar> targets)
    requires std::is_invocable_r_v<double, Function&, std::span<const Scalar>, std::span<const Scalar>>
  {
    if (outputs.count != targets.count) detail::check_targets(outputs, targets, name_.c_str());
    for (long i = 0; i < outputs.count; ++i) sums_[0] += static_cast<double>(function_(outputs[i], targets[i]));
    sums_[1] += static_cast<double>(outputs.count);
  }
  std::span<double> sums() { return sums_; }
  double value() const { return sums_[1] > 0 ? sums_[0] / sums_[1] : std::nan(""); }

 private:
  std::string name_;
  Function function_;
  std::array<double, 2> sums_{};
};

}  // namespace skein::inline SKEIN_ABI::train
