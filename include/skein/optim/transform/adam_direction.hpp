// SPDX-License-Identifier: Apache-2.0
// Adam's direction of one parameter, for transforms of tensors that begin with it or fall back on it: two arrays of state.
#pragma once
#include <cmath>

#include "../optimizer.hpp"
#include "tensor_update.hpp"

namespace skein::inline SKEIN_ABI::optim::detail {

/// m, v: running means of the gradient and its square, states 0 and 1; the gradient becomes m / (sqrt(v) + epsilon), both
/// corrected for their start.
template <class Scalar, class Device>
void adam_direction(const TensorUpdate<Scalar, Device>& t, double beta1, double beta2, double epsilon) {
  const auto fresh1 = static_cast<Scalar>(1 - beta1), keep2 = static_cast<Scalar>(beta2), fresh2 = static_cast<Scalar>(1 - beta2);
  const double n = static_cast<double>(t.step);
  const auto of_first = static_cast<Scalar>(1 / (1 - std::pow(beta1, n)));
  const auto of_second = static_cast<Scalar>(1 / std::sqrt(1 - std::pow(beta2, n)));
  const auto &g = t.gradient, &m = t.state(0), &v = t.state(1);
  m.assign(m + fresh1 * (g - m));
  v.assign(keep2 * v + fresh2 * g * g);
  g.assign(of_first * m / (of_second * sqrt(v) + epsilon_of<Scalar>(epsilon)));
}

}  // namespace skein::inline SKEIN_ABI::optim::detail
