// SPDX-License-Identifier: Apache-2.0
// LeakyRelu: x above zero, a small multiple of x below. Maas, Hannun, Ng, ICML workshop 2013.
#pragma once
#include "elementwise.hpp"
#include "options.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// LeakyRelu of one element.
template <class... Options> struct LeakyReluFunction {
  static constexpr double slope = detail::PickRatio<Slope, 1, 100, Options...>::value;
  template <class T> constexpr T operator()(const T& x) const { return where(x > T(0), x, x * slope); }
  template <class T> static constexpr T derivative_from_output(const T& y) { return where(y > T(0), T(1), T(slope)); }
};

/// y = x for x > 0, else slope * x. Options: Slope<N, D> (default 1/100).
template <class... Options> struct LeakyRelu : Elementwise<LeakyReluFunction<Options...>> {
  static_assert(LeakyReluFunction<Options...>::slope >= 0,
                "LeakyRelu's Slope must not be negative: the sign of the output tells that of the input");
};

}  // namespace skein::inline SKEIN_ABI::nn
