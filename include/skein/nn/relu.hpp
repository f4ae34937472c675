// SPDX-License-Identifier: Apache-2.0
// Relu: max(x, 0). Not a number stays not a number.
#pragma once
#include "../ops/dense_types.hpp"
#include "elementwise.hpp"
#include "output_kind.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Relu of one element.
struct ReluFunction {
  template <class T> constexpr T operator()(const T& x) const { return where(x < T(0), T(0), x); }
  template <class T> static constexpr T derivative_from_output(const T& y) { return where(y > T(0), T(1), T(0)); }
};

/// y = max(x, 0); the derivative at 0 is 0.
struct Relu : Elementwise<ReluFunction> {
  static constexpr OutputKind gives = OutputKind::rectified;
};

}  // namespace skein::inline SKEIN_ABI::nn

namespace skein::inline SKEIN_ABI::ops {
template <> inline constexpr bool is_rectifier<nn::detail::Value<nn::ReluFunction>> = true;
}  // namespace skein::inline SKEIN_ABI::ops
