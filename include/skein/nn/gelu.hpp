// SPDX-License-Identifier: Apache-2.0
// Gelu: x times the share of a standard normal distribution below x. Hendrycks and Gimpel, arXiv:1606.08415. Exact by default,
// as in PyTorch; with the tag TanhForm the paper's approximation.
#pragma once
#include "elementwise.hpp"
#include "options.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Option of Gelu: tanh in place of erf, PyTorch's approximate='tanh'.
struct TanhForm {};

/// Gelu of one element: x times the normal distribution's cumulative function at x.
template <class... Options> struct GeluFunction {
  using options = detail::LayerOptions<List<TanhForm>, Options...>;
  template <class T> constexpr T operator()(const T& x) const {
    if constexpr (detail::has_option<TanhForm>(options{}))
      return x * 0.5 * (T(1) + tanh(T(0.7978845608028654) * (x + T(0.044715) * x * x * x)));  // sqrt(2 / pi)
    else return x * 0.5 * (T(1) + erf(x * 0.7071067811865476));
  }
};

/// y = x Phi(x), over any options; Gelu is the one without.
template <class... Options> struct BasicGelu : Elementwise<GeluFunction<Options...>> {
  using options = typename GeluFunction<Options...>::options;
};

/// y = x (1 + erf(x / sqrt(2))) / 2.
struct Gelu : BasicGelu<> {};

}  // namespace skein::inline SKEIN_ABI::nn
