// SPDX-License-Identifier: Apache-2.0
// Lion: the sign of a momentum. Chen et al., "Symbolic discovery of optimization algorithms", NeurIPS 2023, arXiv:2302.06675.
#pragma once
#include "optimizer.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// p -= lr * (sign(beta1 m + (1 - beta1) g) + weight_decay p); then m = beta2 m + (1 - beta2) g. A rate of a third to a tenth of
/// AdamW's, with as much more weight decay, is what the paper advises.
struct Lion {
  float lr = 1e-4f;
  [[no_unique_address]] detail::refused::LearningRate learning_rate{};
  double beta1 = 0.9, beta2 = 0.99;
  float weight_decay = 0;  ///< times lr: the share by which the weights shrink
  Groups groups = {};

  static constexpr int state_arrays() { return 1; }
  static constexpr const char* state_name(int) { return "momentum"; }
  /// Throws ArgumentError for values out of range.
  void check() const {
    detail::demand_rate("Lion", lr);
    detail::demand_share("Lion", "beta1", beta1);
    detail::demand_share("Lion", "beta2", beta2);
    detail::demand_decay("Lion", weight_decay);
  }
  void describe(NamedValues& to) const {
    to.of("Lion").add(".lr", lr).add(".beta1", beta1).add(".beta2", beta2).add(".weight_decay", weight_decay);
  }

  template <class Scalar, class Device> ops::LionArguments<Scalar> arguments(const UpdateCall<Scalar, Device>& call) const {
    auto arguments = arguments_of<ops::LionArguments<Scalar>>(call);
    arguments.momenta = call.state[0];
    arguments.lr = static_cast<Scalar>(call.lr);
    arguments.fresh1 = static_cast<Scalar>(1 - beta1);
    arguments.fresh2 = static_cast<Scalar>(1 - beta2);
    arguments.decay = static_cast<Scalar>(call.weight_decay);
    return arguments;
  }
};

}  // namespace skein::inline SKEIN_ABI::optim
