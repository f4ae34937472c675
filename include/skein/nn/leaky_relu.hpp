// SPDX-License-Identifier: Apache-2.0
// LeakyRelu: x above zero, a small multiple of x below. Maas, Hannun, Ng, ICML workshop 2013.
#pragma once
#include "elementwise.hpp"
#include "options.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// LeakyRelu of one element.
template <class... Options> struct LeakyReluFunction {
  using options = detail::LayerOptions<List<Slope<1, 100>>, Options...>;
  static constexpr double slope = detail::option<Slope>(options{}).ratio();  // not negative: the output's sign is the input's
  template <class T> constexpr T operator()(const T& x) const { return where(x > T(0), x, x * slope); }
  template <class T> static constexpr T derivative_from_output(const T& y) { return where(y > T(0), T(1), T(slope)); }
};

/// y = x for x > 0, else slope * x. Options: Slope<N, D> (default 1/100).
template <class... Options> struct LeakyRelu : Elementwise<LeakyReluFunction<Options...>> {
  using options = typename LeakyReluFunction<Options...>::options;
};

}  // namespace skein::inline SKEIN_ABI::nn
