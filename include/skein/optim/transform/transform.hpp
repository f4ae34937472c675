// SPDX-License-Identifier: Apache-2.0
// What a gradient transform is: a part of a chain before its optimizer, which changes the gradient. It says what it needs to see
// at once: an element (fused into the optimizer's one pass), a tensor (a parameter's whole gradient), or all of them (a norm).
// Only a transform that needs more than an element makes a moment at which the summed gradient exists in memory.
#pragma once
#include <concepts>
#include <cstdint>

#include "../../core/config.hpp"
#include "../optimizer.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// What a transform sees at once.
enum class Needs {
  element,    ///< S element(const UpdateRates<S>& at, S gradient, S value, S* state) const: the new gradient
  tensor,     ///< void tensor(const TensorUpdate<S, Device>& parameter) const: writes parameter.gradient
  global,     ///< constexpr double factor(double norm) const: of all gradients, whose norm it is given
  curvature,  ///< second moments of what goes through the layers, which its State<Scalar> collects: Kfac
};

template <class Scalar, class Device = Cpu> struct TensorUpdate;  // transform/tensor_update.hpp

/// T says what of the gradient it has to see: `needs`.
template <class T> concept SaysNeeds = requires {
  { T::needs } -> std::convertible_to<Needs>;
};

namespace detail {
template <class T> consteval bool keeps_what_it_needs() {
  if constexpr (T::needs == Needs::element)
    return requires(const T& t, const UpdateRates<float>& at, float gradient, float* state) {
      { t.element(at, gradient, gradient, state) } -> std::same_as<float>;
    };
  else if constexpr (T::needs == Needs::tensor) return requires(const T& t, const TensorUpdate<float>& parameter) {
      t.tensor(parameter);
    };
  else if constexpr (T::needs == Needs::curvature) return requires {
      typename T::template State<float>;
    };
  else return requires(const T& t, double norm) {
      { t.factor(norm) } -> std::convertible_to<double>;
    };
}
template <class T> inline constexpr bool is_a_transform = false;
/// Is T's tensor() for the host's tensors alone?
template <class T> inline constexpr bool of_host_tensors =
    T::needs == Needs::tensor && !requires(const T& t, const TensorUpdate<float, Cuda>& parameter) {
  t.tensor(parameter);
};
/// State arrays of a transform: those it says, else none.
template <class T> constexpr int state_arrays_of() {
  if constexpr (HasState<T>) return T::state_arrays();
  else return 0;
}
}  // namespace detail

/// A transform: copyable, says what it needs, and has the function that goes with it. Optional: `static constexpr int
/// state_arrays()`, arrays in the layout of the parameters, zero at first (of elementwise and tensor transforms), and `void
/// check() const` (throws ArgumentError for bad values).
template <class T> concept Transform = std::copyable<T> && SaysNeeds<T> && detail::keeps_what_it_needs<T>();

/// Refuses, with one sentence, a type that is no transform.
template <class T> consteval void assert_transform() {
  if constexpr (!SaysNeeds<T>)
    static_assert(detail::is_a_transform<T>,
                  "a gradient transform says what it needs to see at once: give it static constexpr auto needs = "
                  "optim::Needs::element, tensor or global");
  else if constexpr (!std::copyable<T>)
    static_assert(detail::is_a_transform<T>, "a gradient transform is a value of hyper-parameters: it must be copyable");
  else if constexpr (!detail::keeps_what_it_needs<T>()) {
    if constexpr (T::needs == Needs::element)
      static_assert(detail::is_a_transform<T>,
                    "a transform that needs an element says what becomes of one: give it S element(const UpdateRates<S>& at, S "
                    "gradient, S value, S* state) const, for any S, which returns the new gradient");
    else if constexpr (T::needs == Needs::tensor)
      static_assert(detail::is_a_transform<T>,
                    "a transform that needs a tensor is given one parameter after the other: give it void tensor(const "
                    "TensorUpdate<S>& parameter) const, for any S, which writes parameter.gradient");
    else if constexpr (T::needs == Needs::curvature)
      static_assert(
          detail::is_a_transform<T>,
          "a transform that needs curvature has a state that collects it: give it a template State<Scalar>, as Kfac has");
    else
      static_assert(
          detail::is_a_transform<T>,
          "a transform that needs all gradients is given their norm: give it double factor(double norm) const, by which "
          "they are multiplied");
  }
}

/// How many stages before the last pass a chain has, and how many of its transforms see tensors (some perhaps the host's alone)
/// or a norm; of an optimizer that is no chain: none.
struct ChainNeeds {
  int stages = 0, tensors = 0, host_tensors = 0, norms = 0, curvatures = 0;
};
template <class O> inline constexpr ChainNeeds chain_needs = [] {
  if constexpr (requires { O::stages; }) return ChainNeeds{O::stages, O::tensors, O::host_tensors, O::norms, O::curvatures};
  else return ChainNeeds{};
}();
/// Has O transforms between whose parts the gradient exists as a whole (a chain with a tensor transform, or with a norm behind
/// its head)?
template <class O> inline constexpr bool has_stages = chain_needs<O>.stages > 0;
/// Does one of its transforms see parameters as tensors?
template <class O> inline constexpr bool needs_tensors = chain_needs<O>.tensors > 0;
/// Does one of them take those of the host alone?
template <class O> inline constexpr bool needs_host_tensors = chain_needs<O>.host_tensors > 0;
/// Is one of its transforms given the norm of all gradients?
template <class O> inline constexpr bool needs_norms = chain_needs<O>.norms > 0;
/// Does one of them precondition by the curvature that a step collects?
template <class O> inline constexpr bool needs_curvature = chain_needs<O>.curvatures > 0;
/// O begins with a norm to clip by, clip_norm(): a chain whose head is a ClipNorm.
template <class O> concept HasClipNorm = requires(const O& o) { o.clip_norm(); };

}  // namespace skein::inline SKEIN_ABI::optim
