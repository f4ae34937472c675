// SPDX-License-Identifier: Apache-2.0
// Clipping by the global norm, a transform: PyTorch's clip_grad_norm_. The norm is over all parameters and, once the gradients
// are reduced, the same on all ranks; the factor goes into UpdateCall::gradient_scale, so that no pass of its own is needed. At
// the head of a chain it is what FitOptions::clip_norm is. Pascanu, Mikolov, Bengio, ICML 2013.
#pragma once
#include <algorithm>
#include <cmath>

#include "../ops/optimizer.hpp"
#include "optimizer.hpp"
#include "transform/transform.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// Gradients whose norm exceeds max_norm are scaled down to it. 0: never (as FitOptions::clip_norm has it).
struct ClipNorm {
  float max_norm = 0;

  static constexpr Needs needs = Needs::global;
  constexpr bool active() const { return max_norm > 0; }
  /// The factor for gradients of this norm: min(1, max_norm / (norm + 1e-6)).
  constexpr double operator()(double norm) const {
    return active() ? std::min(1.0, static_cast<double>(max_norm) / (norm + 1e-6)) : 1.0;
  }
  constexpr double factor(double norm) const { return (*this)(norm); }
  void check() const { detail::demand(max_norm >= 0, "ClipNorm", "max_norm", max_norm, "a norm is not negative"); }
  void describe(NamedValues& to) const { to.of("ClipNorm").add(".max_norm", max_norm); }
};

/// The pieces (plan::even_range) of an arena in which the squares of a norm are added up where ranks must find the same one: the
/// norm then depends on no number of threads.
inline constexpr int norm_pieces = 64;

/// The sum of the squares of gradient_scale times the summed gradients over [begin, end), in double. Workers call it on
/// disjoint parts and add up; the square root of the whole is the norm.
template <class Scalar> double sum_of_squares(const UpdateCall<Scalar, Cpu>& call) {
  return ops::sum_of_squares<Cpu>(arguments_of<ops::UpdateArguments<Scalar>>(call));
}

/// The sum of squares over the ranges that are updated: frozen parameters have no part in the norm.
template <class Scalar> double sum_of_squares(std::span<const ParameterGroupRange> ranges, const UpdateCall<Scalar, Cpu>& call) {
  double sum = 0;
  for (const ParameterGroupRange& range : ranges) {
    UpdateCall<Scalar, Cpu> part = call;
    part.begin = std::max(call.begin, range.begin);
    part.end = std::min(call.end, range.end);
    if (!range.frozen && part.begin < part.end) sum += sum_of_squares(part);
  }
  return sum;
}

}  // namespace skein::inline SKEIN_ABI::optim
