// SPDX-License-Identifier: Apache-2.0
// The mean squared error over all elements: PyTorch's MSELoss.
#pragma once
#include "loss.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// One element of Mse.
struct SquaredDifference {
  template <class Scalar> constexpr Scalar operator()(Scalar x, Scalar t, long, Scalar& derivative) const {
    const Scalar difference = x - t;
    derivative = 2 * difference;
    return difference * difference;
  }
};

/// (output - target)^2, averaged over samples and values.
struct Mse {
  static constexpr TargetKind target = TargetKind::vector;

  template <class Scalar, class Device> double weight(const LossCall<Scalar, Device>& call) const { return element_weight(call); }
  template <class Scalar, class Device> LossSums operator()(const LossCall<Scalar, Device>& call) const {
    return vector_loss(call, SquaredDifference{});
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
