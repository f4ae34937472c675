// SPDX-License-Identifier: Apache-2.0
// Tanh: the hyperbolic tangent.
#pragma once
#include "elementwise.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Tanh of one element.
struct TanhFunction {
  template <class T> constexpr T operator()(const T& x) const { return tanh(x); }
  template <class T> static constexpr T derivative_from_output(const T& y) { return T(1) - y * y; }
};

/// y = tanh(x).
struct Tanh : Elementwise<TanhFunction> {};

}  // namespace skein::inline SKEIN_ABI::nn
