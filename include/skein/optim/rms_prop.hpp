// SPDX-License-Identifier: Apache-2.0
// RMSprop: PyTorch's RMSprop. Tieleman and Hinton, "Neural networks for machine learning", lecture 6.5, 2012; centered and
// with momentum: Graves, arXiv:1308.0850.
#pragma once
#include "optimizer.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// s: running mean of the gradient's square; p -= lr * b, b = momentum * b + g / (sqrt(s) + epsilon).
struct RmsProp {
  float lr = 1e-2f;
  [[no_unique_address]] detail::refused::LearningRate learning_rate{};
  double alpha = 0.99;    ///< the share of s that a step keeps
  double epsilon = 1e-8;  ///< positive: gaps between rows hold zeros, and 0 / 0 would spoil them
  double momentum = 0;
  bool centered = false;   ///< divides by the deviation: s less the square of the mean gradient
  float weight_decay = 0;  ///< added to the gradient (L2)
  Groups groups = {};

  int state_arrays() const { return 1 + centered + (momentum > 0); }
  const char* state_name(int k) const { return k == 0 ? "square_average" : k == 1 && centered ? "gradient_average" : "momentum"; }

  /// Throws ArgumentError for values out of range.
  void check() const {
    detail::demand_rate("RmsProp", lr);
    detail::demand_share("RmsProp", "alpha", alpha);
    detail::demand_epsilon("RmsProp", epsilon);
    detail::demand(momentum >= 0, "RmsProp", "momentum", momentum, "momentum must not be negative");
    detail::demand(momentum < 1, "RmsProp", "momentum", momentum, "momentum must be below 1: else old gradients never fade");
    detail::demand_decay("RmsProp", weight_decay);
  }
  void describe(NamedValues& to) const {
    to.of("RmsProp").add(".lr", lr).add(".alpha", alpha).add(".epsilon", epsilon).add(".momentum", momentum);
    to.add(".centered", centered).add(".weight_decay", weight_decay);
  }

  template <class Scalar, class Device> ops::RmsPropArguments<Scalar> arguments(const UpdateCall<Scalar, Device>& call) const {
    auto arguments = arguments_of<ops::RmsPropArguments<Scalar>>(call);
    int next = 0;
    arguments.square = call.state[next++];
    arguments.average = centered ? call.state[next++] : nullptr;
    arguments.momenta = momentum > 0 ? call.state[next++] : nullptr;
    arguments.lr = static_cast<Scalar>(call.lr);
    arguments.alpha = static_cast<Scalar>(alpha);
    arguments.fresh = static_cast<Scalar>(1 - alpha);
    arguments.epsilon = detail::epsilon_of<Scalar>(epsilon);
    arguments.momentum = static_cast<Scalar>(momentum);
    arguments.decay = static_cast<Scalar>(call.weight_decay);
    return arguments;
  }
};

}  // namespace skein::inline SKEIN_ABI::optim
