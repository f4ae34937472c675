// SPDX-License-Identifier: Apache-2.0
// Adagrad: PyTorch's Adagrad. Duchi, Hazan, Singer, "Adaptive subgradient methods for online learning and stochastic
// optimization", JMLR 12, 2011.
#pragma once
#include "optimizer.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// s: sum of the gradient's squares so far; p -= lr / (1 + (step - 1) lr_decay) * g / (sqrt(s) + epsilon).
struct Adagrad {
  float lr = 1e-2f;
  [[no_unique_address]] detail::refused::LearningRate learning_rate{};
  double lr_decay = 0;
  double epsilon = 1e-10;          ///< positive: gaps between rows hold zeros, and 0 / 0 would spoil them
  double initial_accumulator = 0;  ///< what s begins with. Its array begins with 0 all the same: the pass adds this
  float weight_decay = 0;          ///< added to the gradient (L2)
  Groups groups = {};

  static constexpr int state_arrays() { return 1; }
  static constexpr const char* state_name(int) { return "sum_of_squares"; }
  /// Throws ArgumentError for values out of range.
  void check() const {
    detail::demand_rate("Adagrad", lr);
    detail::demand(lr_decay >= 0, "Adagrad", "lr_decay", lr_decay, "the rate's decay must not be negative");
    detail::demand_finite("Adagrad", "lr_decay", lr_decay);
    detail::demand_epsilon("Adagrad", epsilon);
    detail::demand(initial_accumulator >= 0, "Adagrad", "initial_accumulator", initial_accumulator,
                   "a sum of squares is not negative");
    detail::demand_finite("Adagrad", "initial_accumulator", initial_accumulator);
    detail::demand_decay("Adagrad", weight_decay);
  }
  void describe(NamedValues& to) const {
    to.of("Adagrad").add(".lr", lr).add(".lr_decay", lr_decay).add(".epsilon", epsilon);
    to.add(".initial_accumulator", initial_accumulator).add(".weight_decay", weight_decay);
  }

  template <class Scalar, class Device> ops::AdagradArguments<Scalar> arguments(const UpdateCall<Scalar, Device>& call) const {
    auto arguments = arguments_of<ops::AdagradArguments<Scalar>>(call);
    arguments.sum = call.state[0];
    arguments.lr = static_cast<Scalar>(call.lr / (1 + static_cast<double>(call.step - 1) * lr_decay));
    arguments.initial = static_cast<Scalar>(initial_accumulator);
    arguments.epsilon = detail::epsilon_of<Scalar>(epsilon);
    arguments.decay = static_cast<Scalar>(call.weight_decay);
    return arguments;
  }
};

}  // namespace skein::inline SKEIN_ABI::optim
