// SPDX-License-Identifier: Apache-2.0
// Optimizers and gradient transforms as a user writes them: docs/guide/optim.md quotes them, tests run them on both devices.
#pragma once
#include <cmath>

#include <skein/optim/transform/chain.hpp>
#include <skein/optim/transform/tensor_update.hpp>

namespace own {
namespace sk = skein;

// [quote own_optimizer]
/// Bernstein et al., "signSGD: compressed optimisation for non-convex problems", arXiv:1802.04434: the sign of a momentum.
struct Signum {
  float lr = 1e-4f, momentum = 0.9f, weight_decay = 0;
  static constexpr int state_arrays() { return 1; }
  template <class S> constexpr void element(const sk::optim::UpdateRates<S>& at, S gradient, S& value, S* state) const {
    state[0] = S(momentum) * state[0] + S(1 - momentum) * gradient;
    const S sign = state[0] > 0 ? S(1) : state[0] < 0 ? S(-1) : state[0];  // 0, or a NaN, which has to be seen
    value -= at.lr * (sign + at.weight_decay * value);
  }
};
// [end]

// [quote own_transform]
/// Yong et al., "Gradient centralization", arXiv:2004.01461: the gradient of each output's weights gets a mean of 0.
struct Centralize {
  static constexpr auto needs = sk::optim::Needs::tensor;
  void tensor(const auto& parameter) const {
    const auto& g = parameter.gradient;  // (inputs, outputs)
    if (g.extent(0) > 1) g.assign(g - mean(g, 0));
  }
};
// [end]

// [quote own_element_transform]
/// Gradients as multiples of `step`.
struct Quantize {
  float step = 1e-3f;
  static constexpr auto needs = sk::optim::Needs::element;
  template <class S> constexpr S element(const sk::optim::UpdateRates<S>&, S gradient, S, S*) const {
    return S(step) * std::round(gradient / S(step));
  }
};
// [end]
}  // namespace own
