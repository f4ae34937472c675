// SPDX-License-Identifier: Apache-2.0
// Sigmoid: the logistic function.
#pragma once
#include "elementwise.hpp"
#include "output_kind.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Sigmoid of one element.
struct SigmoidFunction {
  template <class T> constexpr T operator()(const T& x) const { return T(1) / (T(1) + exp(-x)); }
  template <class T> static constexpr T derivative_from_output(const T& y) { return y * (T(1) - y); }
};

/// y = 1 / (1 + exp(-x)).
struct Sigmoid : Elementwise<SigmoidFunction> {
  static constexpr OutputKind gives = OutputKind::probabilities;
};

}  // namespace skein::inline SKEIN_ABI::nn
