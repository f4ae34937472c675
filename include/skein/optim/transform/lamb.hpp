// SPDX-License-Identifier: Apache-2.0
// LAMB, layer-wise adaptive moments, as a transform: chain(Lamb{...}, Sgd{.lr = ...}). You et al., "Large batch optimization for
// deep learning: training BERT in 76 minutes", ICLR 2020, arXiv:1904.00962, algorithm 2, with phi the identity: Adam's direction,
// the weight decay added to it, then a norm for each parameter that is the norm of its weights.
#pragma once
#include <cmath>

#include "../../tensor/reduce.hpp"
#include "adam_direction.hpp"
#include "transform.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// m, v: running means of g and g^2, corrected for their start; r = m / (sqrt(v) + epsilon) + decay w; g = |w| / |r| r for each
/// parameter (r where the weights or r are all zero, as biases are at first). The weight decay is here, not in the optimizer
/// behind it. Norms are in the precision of the parameters, whatever that of the activations.
struct Lamb {
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-6;
  float weight_decay = 0;

  static constexpr Needs needs = Needs::tensor;
  static constexpr int state_arrays() { return 2; }
  void check() const {
    detail::demand_share("Lamb", "beta1", beta1);
    detail::demand_share("Lamb", "beta2", beta2);
    detail::demand_epsilon("Lamb", epsilon);
    detail::demand_decay("Lamb", weight_decay);
  }
  void describe(NamedValues& to) const {
    to.of("Lamb").add(".beta1", beta1).add(".beta2", beta2).add(".epsilon", epsilon).add(".weight_decay", weight_decay);
  }
  template <class Scalar, class Device> void tensor(const TensorUpdate<Scalar, Device>& t) const {
    detail::adam_direction(t, beta1, beta2, epsilon);
    if (const Scalar decay = static_cast<Scalar>(weight_decay * t.decay_factor); decay != 0)
      t.gradient.assign(t.gradient + decay * t.value);
    const Scalar w = norm(t.value), r = norm(t.gradient);
    if (w > 0 && r > 0) t.gradient.assign(w / r * t.gradient);
  }
};

}  // namespace skein::inline SKEIN_ABI::optim
