// SPDX-License-Identifier: Apache-2.0
// Elementwise<Function>: y = f(x), value by value. The user writes f once, for any type; the derivative is formed at compile
// time by running f on dual numbers. Forward and backward are one fused loop each, in vectors:
//
//     struct Swish { template <class T> constexpr T operator()(T x) const { return x * sigmoid(x); } };
//     using Net = Sequential<Linear<64>, Elementwise<Swish>, Linear<10>>;
#pragma once
#include <concepts>
#include <type_traits>

#include "../autodiff/dual.hpp"
#include "../core/half.hpp"
#include "../ops/map.hpp"
#include "layer.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// A function object for Elementwise: empty, and callable with a Dual.
template <class F> concept ElementwiseFunction = std::is_empty_v<F> && std::default_initializable<F> &&
    requires(const F f, Dual<float> x) {
  { f(x) } -> std::convertible_to<Dual<float>>;
};

/// One that knows its derivative from its output: template <class T> static constexpr T derivative_from_output(T y).
template <class F> concept KnowsDerivativeFromOutput = requires(Dual<float> y) {
  { F::derivative_from_output(y) } -> std::convertible_to<Dual<float>>;
};

namespace detail {
/// f(x).
template <class F> struct Value {
  template <class V> SKEIN_ALWAYS_INLINE constexpr V operator()(const V& x) const {
    if constexpr (ElementwiseFunction<F>) return F{}(Dual<V>(x, V(0))).value;
    else return x;  // refused already: no second error
  }
};
/// dy f'(x): beside it stands x, or y where f knows its derivative from the output.
template <class F> struct Chain {
  template <class V> SKEIN_ALWAYS_INLINE constexpr V operator()(const V& dy, const V& at) const {
    if constexpr (KnowsDerivativeFromOutput<F>) return dy * F::derivative_from_output(Dual<V>(at, V(0))).value;
    else if constexpr (ElementwiseFunction<F>) return dy * F{}(Dual<V>(at, V(1))).derivative;
    else return at;
  }
};
template <class F> constexpr bool assert_function() {
  static_assert(std::is_empty_v<F>,
                "Elementwise<F>: F must be an empty function object; parameters go into its template arguments");
  static_assert(!std::is_empty_v<F> || ElementwiseFunction<F>,
                "Elementwise<F>: F lacks: template <class T> constexpr T operator()(T x) const, with exp(x) for std::exp(x) and "
                "where(x < 0, a, b) for ?:");
  return true;
}
}  // namespace detail

/// The layer y = F(x), for any shape. Keeps x for backward, or y where F has derivative_from_output.
template <class F> struct Elementwise {
  static_assert(detail::assert_function<F>());
  using function = F;
  static constexpr bool reads_output = KnowsDerivativeFromOutput<F>;

  /// Samples of any type on a GPU: F runs on floats.
  template <class Device, class Activation> static constexpr bool computes_in = std::same_as<Device, Cuda>&& is_half<Activation>;

  static constexpr LayerInfo describe(Extents in) {
    return {.output = in, .flops = in.count(), .saves_input = !reads_output, .saves_output = reads_output};
  }
  // Padded rows are one array: what is in the gaps does not matter.
  template <class In, class Frame> static void forward(Frame& f) {
    ops::map<typename Frame::Device>(detail::Value<F>{}, f.batch * sample_pitch(In::extents), f.x, f.y);
  }
  template <class In, class Frame> static void backward(Frame& f) {
    if (!f.dx) return;
    const typename Frame::Activation* at = reads_output ? f.y : f.x;
    ops::zip<typename Frame::Device>(detail::Chain<F>{}, f.batch * sample_pitch(In::extents), f.dy, at, f.dx);
  }
  template <class In, class Frame> static constexpr std::string_view kernel() { return "one fused loop"; }
};

/// An Elementwise or what derives from it.
template <class L> concept ElementwiseLayer = requires { typename L::function; }
&&std::derived_from<L, Elementwise<typename L::function>>;

}  // namespace skein::inline SKEIN_ABI::nn
