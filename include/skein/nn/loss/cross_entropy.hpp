// SPDX-License-Identifier: Apache-2.0
// Cross-entropy of logits and class labels: PyTorch's CrossEntropyLoss. Softmax, loss and gradient are one pass over a row
// (ops/softmax.hpp), safe for any logits. Label smoothing: Szegedy et al., CVPR 2016.
#pragma once
#include <vector>

#include "../../ops/softmax.hpp"
#include "loss.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// -sum_c a_c log softmax(output)_c, with a = (1 - s) w[label] at the label and s w[c] / classes everywhere. The mean divides by
/// the sum of w[label] over the samples, not by their number, as torch.nn.CrossEntropyLoss(weight=w) does: in a step over the
/// samples of all its batches and ranks, in an evaluation over the whole data set (PyTorch: over one batch on one rank).
struct CrossEntropy {
  double label_smoothing = 0;                     ///< s: the share of a label that is spread over all classes, in [0, 1)
  std::vector<float> class_weights = {};          ///< w, as they are: not scaled to a sum; empty: 1 for every class
  std::optional<std::int32_t> ignore_label = {};  ///< samples with this label count nothing

  static constexpr TargetKind target = TargetKind::label;
  static constexpr OutputKind takes = OutputKind::logits;

  std::span<const float> table() const { return {class_weights.data(), class_weights.size()}; }
  std::optional<std::int32_t> ignored_label() const { return ignore_label; }
  void describe(NamedValues& to) const { to.of("CrossEntropy").add(".label_smoothing", label_smoothing); }

  /// What the mean divides by, for labels on the host: the sum of the class weights of those that are not ignored.
  template <class Scalar> double weight(const LossCall<Scalar, Cpu>& call) const {
    check(call.width);
    if (class_weights.empty() && !ignore_label) return static_cast<double>(call.count);
    return label_weight("CrossEntropy", call, table(), ignore_label);
  }
  /// Throws ArgumentError for a label that is no class (it names sample and label), for a number of weights that is not that
  /// of the classes, and for a smoothing outside [0, 1).
  template <class Scalar, class Device> LossSums operator()(const LossCall<Scalar, Device>& call) const {
    check(call.width);
    ops::CrossEntropyArguments<Scalar> arguments{call.outputs, call.output_pitch, call.width,   call.labels,
                                                 call.count,   call.scale,        call.gradient};
    arguments.smoothing = static_cast<Scalar>(label_smoothing);
    arguments.class_weights = table_of(call, table());
    arguments.ignores = ignore_label.has_value();
    arguments.ignored = ignore_label.value_or(0);
    arguments.sums = call.sums;
    arguments.values = call.values;
    const ops::CrossEntropySums s = ops::cross_entropy<Device>(arguments);
    if (s.wrong >= 0) throw_wrong_label(call, s.wrong, ignore_label);
    return {s.loss, s.weight, s.correct};
  }

 private:
  void check(long classes) const {
    check_class_weights("CrossEntropy", table(), classes);
    if (!(label_smoothing >= 0 && label_smoothing < 1))
      throw ArgumentError(text(
          "CrossEntropy{.label_smoothing = {}}: smoothing is a share, from 0 to 1, and with 1 nothing would be left of the label",
          label_smoothing));
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
