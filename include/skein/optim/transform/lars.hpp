// SPDX-License-Identifier: Apache-2.0
// LARS, layer-wise adaptive rate scaling, as a transform: chain(Lars{...}, Sgd{.lr = ..., .momentum = 0.9}). You, Gitman,
// Ginsburg, "Large batch training of convolutional networks", arXiv:1708.03888, algorithm 1: the local rate of a parameter is
// trust |w| / (|g| + decay |w|). The paper's momentum holds rate times gradient, Sgd's the gradient alone (PyTorch's form): the
// two agree at a constant rate.
#pragma once
#include "../../tensor/reduce.hpp"
#include "tensor_update.hpp"
#include "transform.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// g = trust |w| / (|g| + decay |w|) (g + decay w) for each parameter; one whose weights or gradients are all zero stays as it
/// is. The weight decay is here, not in the optimizer behind it.
struct Lars {
  float trust = 1e-3f, weight_decay = 0;

  static constexpr Needs needs = Needs::tensor;
  void check() const {
    detail::demand(trust > 0, "Lars", "trust", trust, "the trust coefficient must be positive");
    detail::demand_finite("Lars", "trust", trust);
    detail::demand_decay("Lars", weight_decay);
  }
  void describe(NamedValues& to) const { to.of("Lars").add(".trust", trust).add(".weight_decay", weight_decay); }
  // [quote tensor]
  template <class Scalar, class Device> void tensor(const TensorUpdate<Scalar, Device>& t) const {
    const Scalar decay = static_cast<Scalar>(weight_decay * t.decay_factor), w = norm(t.value), g = norm(t.gradient);
    if (w > 0 && g > 0) t.gradient.assign(static_cast<Scalar>(trust) * w / (g + decay * w) * (t.gradient + decay * t.value));
  }
  // [end]
};

}  // namespace skein::inline SKEIN_ABI::optim
