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
      for (long c = row.begin(); c < row.width; c += row.step()) row.derivative(c, Scalar(0));
    row.derivative_at_label(Scalar(-1));
    return -row.x[row.label];
  }
};

/// -w[label] output[label]. The mean divides by the sum of w[label] over the samples of a step on all ranks, not by their number:
/// see CrossEntropy.
struct Nll {
  std::vector<float> class_weights = {};          ///< w, as they are: not scaled to a sum; empty: 1 for every class
  std::optional<std::int32_t> ignore_label = {};  ///< samples with this label count nothing

  static constexpr TargetKind target = TargetKind::label;
  static constexpr OutputKind takes = OutputKind::log_probabilities;
  std::span<const float> table() const { return {class_weights.data(), class_weights.size()}; }
  std::optional<std::int32_t> ignored_label() const { return ignore_label; }

  /// What the mean divides by, for labels on the host: the sum of the class weights of those that are not ignored.
  template <class Scalar> double weight(const LossCall<Scalar, Cpu>& call) const {
    return label_weight("Nll", call, table(), ignore_label);
  }
  /// Throws ArgumentError for a label that is no class, and for a number of weights that is not that of the classes.
  template <class Scalar, class Device> LossSums operator()(const LossCall<Scalar, Device>& call) const {
    check_class_weights("Nll", table(), call.width);
    return label_loss(call, NegativeAtLabel{}, {.class_weights = table_of(call, table()), .ignore = ignore_label});
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
