// SPDX-License-Identifier: Apache-2.0
// AdamW: PyTorch's AdamW. Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019: the weights shrink by
// themselves, the moments never see the decay.
#pragma once
#include "adam.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// p *= 1 - lr * weight_decay, then Adam without weight decay.
struct AdamW {
  float lr = 1e-3f;
  [[no_unique_address]] detail::refused::LearningRate learning_rate{};
  [[no_unique_address]] detail::refused::Betas betas{};
  double beta1 = 0.9, beta2 = 0.999;
  [[no_unique_address]] detail::refused::Eps eps{};
  double epsilon = 1e-8;       ///< positive: gaps between rows hold zeros, and 0 / 0 would spoil them
  float weight_decay = 1e-2f;  ///< times lr: the share by which the weights shrink
  bool amsgrad = false;        ///< divides by the greatest v so far
  Groups groups = {};

  int state_arrays() const { return amsgrad ? 3 : 2; }
  static constexpr const char* state_name(int k) { return detail::adam_state_name(k); }
  /// Throws ArgumentError for values out of range.
  void check() const { detail::check_adam("AdamW", *this); }
  void describe(NamedValues& to) const { detail::describe_adam("AdamW", *this, to); }

  template <class Scalar, class Device> ops::AdamArguments<Scalar> arguments(const UpdateCall<Scalar, Device>& call) const {
    auto arguments = detail::adam_pass(*this, call);
    arguments.shrink = static_cast<Scalar>(1 - static_cast<double>(call.lr) * static_cast<double>(call.weight_decay));
    return arguments;
  }
};

}  // namespace skein::inline SKEIN_ABI::optim
