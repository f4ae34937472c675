// SPDX-License-Identifier: Apache-2.0
// Stochastic gradient descent with momentum: PyTorch's SGD. Sutskever et al., "On the importance of initialization and
// momentum in deep learning", ICML 2013 (PyTorch's form: the rate multiplies the momentum buffer).
#pragma once
#include "optimizer.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// p -= lr * m, m = momentum * m + (1 - dampening) * (g + weight_decay * p); the first m is the gradient.
struct Sgd {
  float lr = 1e-3f;
  [[no_unique_address]] detail::refused::LearningRate learning_rate{};
  double momentum = 0;
  bool nesterov = false;  ///< looks ahead: p -= lr * (g + momentum * m)
  float weight_decay = 0;
  double dampening = 0;
  Groups groups = {};

  int state_arrays() const { return momentum != 0 ? 1 : 0; }
  static constexpr const char* state_name(int) { return "momentum"; }

  void check() const {
    detail::demand_rate("Sgd", lr);
    detail::demand(momentum >= 0, "Sgd", "momentum", momentum, "momentum must not be negative");
    detail::demand(momentum < 1, "Sgd", "momentum", momentum, "momentum must be below 1: else old gradients never fade");
    detail::demand_decay("Sgd", weight_decay);
    detail::demand(!nesterov || momentum > 0, "Sgd", "momentum", momentum, "Nesterov's form needs a positive momentum");
    detail::demand(!nesterov || dampening == 0, "Sgd", "dampening", dampening, "Nesterov's form needs a dampening of 0");
    detail::demand_finite("Sgd", "dampening", dampening);
    detail::demand(dampening == 0 || momentum != 0, "Sgd", "dampening", dampening, "dampening does nothing without momentum");
  }

  void describe(NamedValues& to) const {
    to.of("Sgd").add(".lr", lr).add(".momentum", momentum).add(".nesterov", nesterov);
    to.add(".weight_decay", weight_decay).add(".dampening", dampening);
  }

  template <class Scalar, class Device> ops::SgdArguments<Scalar> arguments(const UpdateCall<Scalar, Device>& call) const {
    auto arguments = arguments_of<ops::SgdArguments<Scalar>>(call);
    arguments.lr = static_cast<Scalar>(call.lr);
    arguments.decay = static_cast<Scalar>(call.weight_decay);
    if (momentum != 0) {
      arguments.momenta = call.state[0];
      arguments.momentum = static_cast<Scalar>(momentum);
      arguments.keep = call.step == 1 ? Scalar(1) : static_cast<Scalar>(1 - dampening);
      arguments.nesterov = nesterov;
    }
    return arguments;
  }
};

}  // namespace skein::inline SKEIN_ABI::optim
