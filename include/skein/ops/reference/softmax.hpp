// SPDX-License-Identifier: Apache-2.0
// Cross-entropy of logits as plain loops: the oracle of the tests, and what runs without xsimd.
#pragma once
#include <cmath>
#include <cstdint>

#include "../step_values.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// Rows of logits with a label each. Gradient rows (null: not wanted) have the pitch of the logits; their gaps become zero.
template <class Scalar> struct CrossEntropyArguments {
  const Scalar* logits = nullptr;
  long pitch = 0, classes = 0;
  const std::int32_t* labels = nullptr;
  long count = 0;
  Scalar scale = 1;  ///< factor of the gradient
  Scalar* gradient = nullptr;
  Scalar smoothing = 0;
  const float* class_weights = nullptr;  ///< (classes); null: 1 for each
  bool ignores = false;
  std::int32_t ignored = 0;            ///< the label that counts nothing, where `ignores`
  double* sums = nullptr;              ///< a device's: loss, weight and correct answers are added there
  const StepValues* values = nullptr;  ///< a device's: the gradient is also multiplied by its loss_scale

  constexpr bool skipped(std::int32_t label) const { return ignores && label == ignored; }
  constexpr bool legal(std::int32_t label) const {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(label)) < static_cast<std::uint64_t>(classes);
  }
};

/// `wrong` is the first row whose label is no class, or -1; the pass stops there.
struct CrossEntropySums {
  double loss = 0, weight = 0, correct = 0;
  long wrong = -1;
};

namespace reference {
/// Sums of the losses, weights and correct answers of the rows; writes the gradient where the arguments name a place for it.
template <class Scalar> CrossEntropySums cross_entropy(const CrossEntropyArguments<Scalar>& p) {
  CrossEntropySums sums;
  const auto w = [&p](long c) { return p.class_weights ? static_cast<Scalar>(p.class_weights[c]) : Scalar(1); };
  for (long r = 0; r < p.count; ++r) {
    const Scalar* x = p.logits + r * p.pitch;
    Scalar* g = p.gradient ? p.gradient + r * p.pitch : nullptr;
    const std::int32_t label = p.labels[r];
    if (p.skipped(label)) {
      for (long c = 0; g && c < p.pitch; ++c) g[c] = 0;
      continue;
    }
    if (!p.legal(label)) {
      sums.wrong = r;
      return sums;
    }
    long best = 0;
    for (long c = 1; c < p.classes; ++c)
      if (x[c] > x[best]) best = c;
    Scalar total = 0;
    for (long c = 0; c < p.classes; ++c) total += std::exp(x[c] - x[best]);
    const Scalar log_total = std::log(total);
    Scalar loss = 0, attention = 0;  // sum_c a_c (-log p_c), and sum_c a_c
    for (long c = 0; c < p.classes; ++c) {
      const Scalar a = (c == label ? (1 - p.smoothing) * w(c) : Scalar(0)) + p.smoothing / static_cast<Scalar>(p.classes) * w(c);
      if (a != 0) loss += a * (log_total - (x[c] - x[best]));
      attention += a;
      if (g) g[c] = a;
    }
    for (long c = 0; g && c < p.classes; ++c) g[c] = (attention * std::exp(x[c] - x[best]) / total - g[c]) * p.scale;
    for (long c = p.classes; g && c < p.pitch; ++c) g[c] = 0;
    sums.loss += static_cast<double>(loss);
    sums.weight += static_cast<double>(w(label));
    sums.correct += best == label && total == total;  // among NaNs there is no right answer
  }
  return sums;
}
}  // namespace reference

}  // namespace skein::inline SKEIN_ABI::ops
