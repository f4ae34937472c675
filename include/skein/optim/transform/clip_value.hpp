// SPDX-License-Identifier: Apache-2.0
// Clipping element by element: PyTorch's clip_grad_value_, within the optimizer's pass.
#pragma once
#include "transform.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// Gradients beyond [-limit, limit] become its ends.
struct ClipValue {
  float limit = 1;

  static constexpr Needs needs = Needs::element;
  void check() const { detail::demand(limit > 0, "ClipValue", "limit", limit, "the limit must be positive"); }
  void describe(NamedValues& to) const { to.of("ClipValue").add(".limit", limit); }
  template <class Scalar> constexpr Scalar element(const UpdateRates<Scalar>&, Scalar gradient, Scalar, Scalar*) const {
    const Scalar most = static_cast<Scalar>(limit);
    return gradient > most ? most : gradient < -most ? -most : gradient;
  }
};

}  // namespace skein::inline SKEIN_ABI::optim
