// SPDX-License-Identifier: Apache-2.0
// The mean squared error over all elements: PyTorch's MSELoss.
#pragma once
#include "loss.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// (output - target)^2, averaged over samples and values.
struct Mse {
  static constexpr Target target = Target::vector;

  template <class Scalar> double weight(const LossCall<Scalar, Cpu>& call) const {
    return static_cast<double>(call.count) * static_cast<double>(call.width);
  }
  template <class Scalar> LossSums operator()(const LossCall<Scalar, Cpu>& call) const {
    return detail::vector_loss(call, [](Scalar x, Scalar t, long, Scalar& slope) {
      const Scalar difference = x - t;
      slope = 2 * difference;
      return difference * difference;
    });
  }
};

}  // namespace skein::inline SKEIN_ABI::nn
