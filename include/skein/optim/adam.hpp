// SPDX-License-Identifier: Apache-2.0
// Adam: PyTorch's Adam. Kingma and Ba, ICLR 2015; AMSGrad: Reddi, Kale, Kumar, ICLR 2018. Weight decay is added to the
// gradient here; AdamW takes it out of the weights.
#pragma once
#include <cmath>

#include "optimizer.hpp"

namespace skein::inline SKEIN_ABI::optim {

namespace detail {
constexpr const char* adam_state_name(int k) {
  return k == 0 ? "first_moment" : k == 1 ? "second_moment" : "greatest_second_moment";
}

template <class Hyper> void check_adam(const char* name, const Hyper& h) {
  demand_rate(name, h.lr);
  demand_share(name, "beta1", h.beta1);
  demand_share(name, "beta2", h.beta2);
  demand_epsilon(name, h.epsilon);
  demand_decay(name, h.weight_decay);
}

template <class Hyper> void describe_adam(const char* name, const Hyper& h, NamedValues& to) {
  to.of(name).add(".lr", h.lr).add(".beta1", h.beta1).add(".beta2", h.beta2).add(".epsilon", h.epsilon);
  to.add(".weight_decay", h.weight_decay).add(".amsgrad", h.amsgrad);
}

/// All of the pass but the weight decay.
template <class Hyper, class Scalar, class Device>
ops::AdamArguments<Scalar> adam_pass(const Hyper& h, const UpdateCall<Scalar, Device>& call) {
  auto arguments = arguments_of<ops::AdamArguments<Scalar>>(call);
  const double t = static_cast<double>(call.step);
  arguments.first = call.state[0];
  arguments.second = call.state[1];
  arguments.greatest = h.amsgrad ? call.state[2] : nullptr;
  arguments.fresh1 = static_cast<Scalar>(1 - h.beta1);
  arguments.beta2 = static_cast<Scalar>(h.beta2);
  arguments.fresh2 = static_cast<Scalar>(1 - h.beta2);
  arguments.epsilon = epsilon_of<Scalar>(h.epsilon);
  arguments.rate = static_cast<Scalar>(call.lr / (1 - std::pow(h.beta1, t)));
  arguments.correction = static_cast<Scalar>(1 / std::sqrt(1 - std::pow(h.beta2, t)));
  return arguments;
}
}  // namespace detail

/// m, v: running means of the gradient and its square; p -= lr * m^ / (sqrt(v^) + epsilon), both corrected for their start.
struct Adam {
  float lr = 1e-3f;
  [[no_unique_address]] detail::refused::LearningRate learning_rate{};
  [[no_unique_address]] detail::refused::Betas betas{};
  double beta1 = 0.9, beta2 = 0.999;
  [[no_unique_address]] detail::refused::Eps eps{};
  double epsilon = 1e-8;   ///< positive: gaps between rows hold zeros, and 0 / 0 would spoil them
  float weight_decay = 0;  ///< added to the gradient (L2)
  bool amsgrad = false;    ///< divides by the greatest v so far
  Groups groups = {};

  int state_arrays() const { return amsgrad ? 3 : 2; }
  static constexpr const char* state_name(int k) { return detail::adam_state_name(k); }
  /// Throws ArgumentError for values out of range.
  void check() const { detail::check_adam("Adam", *this); }
  void describe(NamedValues& to) const { detail::describe_adam("Adam", *this, to); }

  template <class Scalar, class Device> ops::AdamArguments<Scalar> arguments(const UpdateCall<Scalar, Device>& call) const {
    auto arguments = detail::adam_pass(*this, call);
    arguments.decay = static_cast<Scalar>(call.weight_decay);
    return arguments;
  }
};

}  // namespace skein::inline SKEIN_ABI::optim
