// SPDX-License-Identifier: Apache-2.0
// The Huber loss over all elements: PyTorch's HuberLoss. Huber, "Robust estimation of a location parameter", 1964.
#pragma once
#include <cmath>

#include "loss.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// One element of Huber.
template <class Scalar> struct HuberDifference {
  Scalar edge;
  constexpr Scalar operator()(Scalar x, Scalar t, long, Scalar& derivative) const {
    const Scalar difference = x - t, size = std::abs(difference);
    const bool inside = size <= edge;
    derivative = inside ? difference : (difference > 0 ? edge : difference < 0 ? -edge : difference);
    return inside ? difference * difference / 2 : edge * (size - edge / 2);
  }
};

/// d^2 / 2 while |d| <= delta, delta (|d| - delta / 2) beyond, for d = output - target; averaged over samples and values.
struct Huber {
  double delta = 1;  ///< where the parabola becomes a line; positive

  static constexpr TargetKind target = TargetKind::vector;
  void describe(NamedValues& to) const { to.of("Huber").add(".delta", delta); }

  template <class Scalar, class Device> double weight(const LossCall<Scalar, Device>& call) const { return element_weight(call); }
  /// Throws ArgumentError for a delta that is not positive.
  template <class Scalar, class Device> LossSums operator()(const LossCall<Scalar, Device>& call) const {
    if (!(delta > 0)) throw ArgumentError(text("Huber{.delta = {}}: delta must be positive", delta));
    return vector_loss(call, HuberDifference<Scalar>{static_cast<Scalar>(delta)});
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
