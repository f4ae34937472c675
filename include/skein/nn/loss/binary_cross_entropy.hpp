// SPDX-License-Identifier: Apache-2.0
// Binary cross-entropy of logits: PyTorch's BCEWithLogitsLoss (not its BCELoss: do not put a Sigmoid before it). Every
// output is a yes-or-no question of its own; the target is the probability of yes.
#pragma once
#include <cmath>
#include <vector>

#include "check_targets.hpp"
#include "loss.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// One element of BinaryCrossEntropy.
template <class Scalar> struct BinaryCrossEntropyElement {
  const float* positive_weight = nullptr;  ///< null: 1
  long period = 1;                         ///< weights: 1, or the width
  constexpr Scalar operator()(Scalar x, Scalar t, long i, Scalar& derivative) const {
    // log s(x) = min(x, 0) - log(1 + exp(-|x|)), and s(x) of the same exponential: nothing overflows.
    const Scalar decay = std::exp(-std::abs(x)), rest = std::log1p(decay);
    const Scalar yes = (x < 0 ? x : Scalar(0)) - rest, no = (x < 0 ? Scalar(0) : -x) - rest;
    const Scalar sigmoid = (x < 0 ? decay : Scalar(1)) / (1 + decay);
    const Scalar p = !positive_weight ? Scalar(1) : static_cast<Scalar>(positive_weight[period == 1 ? 0 : i % period]);
    derivative = (1 - t) * sigmoid - p * t * (1 - sigmoid);
    return -(p * t * yes + (1 - t) * no);
  }
};

/// -(positive_weight t log s(x) + (1 - t) log(1 - s(x))) for s the sigmoid; averaged over samples and values. Safe for any x.
struct BinaryCrossEntropy {
  std::vector<float> positive_weight = {};  ///< empty: 1; one value: of all outputs; else one an output

  static constexpr TargetKind target = TargetKind::vector;
  static constexpr OutputKind takes = OutputKind::logits;
  std::span<const float> table() const { return {positive_weight.data(), positive_weight.size()}; }

  /// Throws ArgumentError for the first target that is no probability: one pass over them. See ChecksTargets.
  template <class Scalar>
  static void check_targets(const Scalar* targets, long pitch, long width, long count, const SampleNames& names) {
    for (long i = 0; i < count; ++i) {
      const Scalar* row = targets + i * pitch;
      for (long c = 0; c < width; ++c)
        if (!(row[c] >= 0 && row[c] <= 1)) [[unlikely]]
          throw ArgumentError(
              text("{} has the target {}{}; BinaryCrossEntropy takes 0 to 1, the probability of yes: bring the targets there",
                   names(i), row[c], width > 1 ? text(" for output {}", c) : std::string()));
    }
  }
  template <class Scalar, class Device> double weight(const LossCall<Scalar, Device>& call) const { return element_weight(call); }
  /// Throws ArgumentError where the number of weights fits neither one nor the outputs.
  template <class Scalar, class Device> LossSums operator()(const LossCall<Scalar, Device>& call) const {
    const long weights = static_cast<long>(positive_weight.size());
    if (weights > 1 && weights != call.width)
      throw ArgumentError(text("BinaryCrossEntropy has {} positive weights for {} outputs: give it none, one, or one an output",
                               weights, call.width));
    check_weights("BinaryCrossEntropy", "positive_weight", positive_weight);
    return vector_loss(call, BinaryCrossEntropyElement<Scalar>{table_of(call, table()), weights > 1 ? weights : 1});
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
