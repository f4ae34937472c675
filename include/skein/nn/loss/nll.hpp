// SPDX-License-Identifier: Apache-2.0
// The negative log-likelihood of log-probabilities: PyTorch's NLLLoss. It follows a LogSoftmax; CrossEntropy does both at
// once, and faster.
#pragma once
#include <vector>

#include "loss.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// One row of Nll: -output[label].
struct NegativeAtLabel {
  template <class Row> constexpr typename Row::Scalar operator()(const Row& row) const {
    using Scalar = typename Row::Scalar;
    if (row.gradient)
      for (long c = row.begin(); c < row.width; c += row.step()) row.slope(c, Scalar(0));
    row.slope_at_label(Scalar(-1));
    return -row.x[row.label];
  }
};

/// -weight[label] output[label], divided by the sum of the labels' weights.
struct Nll {
  std::vector<float> class_weights = {};            ///< empty: 1 for every class
  std::optional<std::int32_t> ignore_label = {};    ///< samples with this label count nothing

  static constexpr Target target = Target::label;
  std::span<const float> table() const { return class_weights; }

  /// Of labels on the host.
  template <class Scalar> double weight(const LossCall<Scalar, Cpu>& call) const {
    check(call.width);
    check_labels(call.labels, call.count, call.width, ignore_label, call.first);
    double sum = 0;
    for (long i = 0; i < call.count; ++i)
      if (!(ignore_label && call.labels[i] == *ignore_label))
        sum += class_weights.empty() ? 1.0 : class_weights[static_cast<std::size_t>(call.labels[i])];
    return sum;
  }
  /// Throws ArgumentError for a label that is no class, and for a number of weights that is not that of the classes.
  template <class Scalar, class Device> LossSums operator()(const LossCall<Scalar, Device>& call) const {
    check(call.width);
    return label_loss(call, NegativeAtLabel{}, {.class_weights = table_of(call, table()), .ignore = ignore_label});
  }

 private:
  void check(long classes) const {
    if (!class_weights.empty() && static_cast<long>(class_weights.size()) != classes)
      throw ArgumentError("Nll has " + std::to_string(class_weights.size()) + " class weights for " + std::to_string(classes) +
                          " outputs: give it one a class, or none");
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
