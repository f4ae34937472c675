// SPDX-License-Identifier: Apache-2.0
// GradientDivisor: what the gradients of a loop by hand are divided by. Who calls an executor knows the number of a step's
// samples before, and the sum of their weights (class_weights, ignore_label) only after its last call.
#pragma once
#include <cmath>
#include <limits>

#include "../../core/error.hpp"
#include "../../core/text.hpp"
#include "../executor_options.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::nn {

/// The divisor of the gradients that the calls of one step have made.
class GradientDivisor {
 public:
  /// After the pass of a call with so many samples: `expected`, what it has divided by, `weight`, that of its samples and of
  /// those of the calls that it adds to. Is it a mean of its own, to be divided by `weight`? Throws ArgumentError where it has
  /// added gradients of another scale.
  bool add_call(const ExecutorCall& call, long samples, double expected, double weight) {
    const bool mean = !call.scale && !call.accumulate && call.of_samples <= samples;
    const double own = call.accumulate ? weight - weight_ : weight;
    weight_ = weight;
    if (call.accumulate && !call.scale) check_scale(call, expected, own);
    const double divisor = call.scale ? 0 : mean && weight > 0 ? weight : expected;
    if (!call.accumulate) divided_ = false;
    if (!call.accumulate || divisor_ < 0) divisor_ = divisor;
    else if (divisor_ != divisor) divisor_ = 0;
    return mean;
  }

  /// A call has thrown in its pass: what the sums have of it nobody knows, and the calls that add to it are not compared.
  void forget() { weight_ = std::numeric_limits<double>::quiet_NaN(); }
  /// The divisor so far, which `weight` takes the place of. Throws ArgumentError where the gradients have no such divisor.
  double replace(double weight, GradientState state) {
    if (state != GradientState::made && state != GradientState::part)
      throw ArgumentError(
          "divide_by_weight: the model has no new gradients: call it after executor.forward_backward(batch) and before "
          "optimizer.step(model)");
    if (!(weight >= 0 && std::isfinite(weight)))
      throw ArgumentError(
          text("divide_by_weight: the weight is {}: it is the sum of LossSums::weight over all calls and ranks of "
               "the step, finite and not negative",
               weight));
    if (!(divisor_ > 0))
      throw ArgumentError(
          "divide_by_weight: the calls of this step have made no part of one mean: give each the same .of_samples, all samples "
          "of the step, and no .scale, and leave .accumulate out in the first");
    const double before = divisor_;
    if (weight > 0) divisor_ = weight;
    divided_ = true;
    return before;
  }

 private:
  void check_scale(const ExecutorCall& call, double expected, double own) const {
    if (call.of_samples == 0 && own > 0 && std::abs(own - expected) > 1e-9 * expected)
      throw ArgumentError(text(
          "forward_backward: the samples of this call have the weight {} (class_weights, ignore_label, the loss's own weight()) "
          "where {} is their number, and .accumulate adds to a mean of another weight: give each call .of_samples, all samples "
          "of the step, and after the last executor.divide_by_weight(sums.weight)",
          own, expected));
    if (call.of_samples > 0 && divided_)
      throw ArgumentError(
          "forward_backward: .accumulate adds to gradients that divide_by_weight has divided already: call that after the last "
          "call of each step, and leave .accumulate out in the first of the next");
  }

  double divisor_ = -1;  // 0: there is no one; less: no call was before
  double weight_ = 0;    // of the samples since the last call that did not accumulate
  bool divided_ = false;
};

}  // namespace skein::inline SKEIN_ABI::nn

SKEIN_END_COLD
