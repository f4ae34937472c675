// SPDX-License-Identifier: Apache-2.0
// The negative log-likelihood of log-probabilities: PyTorch's NLLLoss. It follows a LogSoftmax; CrossEntropy does both at
// once, and faster.
#pragma once
#include <vector>

#include "loss.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// -weight[label] output[label], divided by the sum of the labels' weights.
struct Nll {
  std::vector<float> class_weights = {};            ///< empty: 1 for every class
  std::optional<std::int32_t> ignore_label = {};    ///< samples with this label count nothing

  static constexpr Target target = Target::label;

  template <class Scalar> double weight(const LossCall<Scalar, Cpu>& call) const {
    check(call);
    double sum = 0;
    for (long i = 0; i < call.count; ++i)
      if (!(ignore_label && call.labels[i] == *ignore_label)) sum += factor(call.labels[i]);
    return sum;
  }
  /// Throws ArgumentError for a label that is no class, and for a number of weights that is not that of the classes.
  template <class Scalar> LossSums operator()(const LossCall<Scalar, Cpu>& call) const {
    check(call);
    LossSums sums;
    for (long r = 0; r < call.count; ++r) {
      const Scalar* x = call.outputs + r * call.output_pitch;
      Scalar* g = call.gradient ? call.gradient + r * call.output_pitch : nullptr;
      for (long i = 0; g && i < call.output_pitch; ++i) g[i] = 0;
      const std::int32_t label = call.labels[r];
      if (ignore_label && label == *ignore_label) continue;
      long best = 0;
      for (long i = 1; i < call.width; ++i)
        if (x[i] > x[best]) best = i;
      const float w = factor(label);
      sums.loss -= static_cast<double>(w) * static_cast<double>(x[label]);
      sums.weight += w;
      sums.correct += best == label;
      if (g) g[label] = -static_cast<Scalar>(w) * call.scale;
    }
    return sums;
  }

 private:
  float factor(std::int32_t label) const { return class_weights.empty() ? 1.0f : class_weights[static_cast<std::size_t>(label)]; }
  template <class Scalar> void check(const LossCall<Scalar, Cpu>& call) const {
    if (!class_weights.empty() && static_cast<long>(class_weights.size()) != call.width)
      throw ArgumentError("Nll has " + std::to_string(class_weights.size()) + " class weights for " + std::to_string(call.width) +
                          " outputs: give it one a class, or none");
    check_labels(call.labels, call.count, call.width, ignore_label, call.first);
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
