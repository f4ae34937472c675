// SPDX-License-Identifier: Apache-2.0
// Elementwise transforms within a pass: around the arguments of the optimizer's own pass, so that a gradient is read once, or
// where the gradient of a whole parameter is wanted, as it is summed over the workers and written to memory.
#pragma once
#include <algorithm>

#include "transform.hpp"

namespace skein::inline SKEIN_ABI::optim::detail {

/// The end of a list of elementwise transforms.
struct NoTransform {
  static constexpr int arrays = 0;
  template <class Scalar> constexpr Scalar operator()(const UpdateRates<Scalar>&, Scalar gradient, Scalar, Scalar*) const {
    return gradient;
  }
};
/// One transform after the other; `state` has the elements of their arrays, in that order.
template <class T, class Rest> struct Fused {
  static constexpr int own = state_arrays_of<T>(), arrays = own + Rest::arrays;
  T transform;
  Rest rest;
  template <class Scalar>
  constexpr Scalar operator()(const UpdateRates<Scalar>& at, Scalar gradient, Scalar value, Scalar* state) const {
    return rest(at, transform.element(at, gradient, value, state), value, state + own);
  }
};

/// The arguments of an optimizer's pass with transforms before it: a pass of ops like others.
template <class Arguments, class Transforms> struct FusedArguments : Arguments {
  using Scalar = typename Arguments::Scalar;
  static constexpr int own = Arguments::arrays, arrays = own + Transforms::arrays;
  Transforms transforms;
  UpdateRates<Scalar> rates{};
  Scalar* state_of[Transforms::arrays + 1] = {};

  constexpr Scalar* array(int k) const { return k < own ? Arguments::array(k) : state_of[k - own]; }
  constexpr void element(Scalar gradient, Scalar& value, Scalar* state) const {
    Arguments::element(transforms(rates, gradient, value, state + own), value, state);
  }
  constexpr void rescale(Scalar lr_factor, Scalar decay_factor) {
    Arguments::rescale(lr_factor, decay_factor);
    rates.lr *= lr_factor;
    rates.weight_decay *= decay_factor;
  }
};

/// A pass that writes the gradient where the optimizer's would take it: array 0, which may be the gradient's own; parameters
/// stay.
template <class Scalar, class Transforms> struct WriteArguments : ops::UpdateArguments<Scalar> {
  static constexpr int arrays = 1 + Transforms::arrays;
  Transforms transforms;
  UpdateRates<Scalar> rates{};
  Scalar* array_of[arrays] = {};

  constexpr Scalar* array(int k) const { return array_of[k]; }
  constexpr void element(Scalar gradient, Scalar& value, Scalar* state) const {
    state[0] = transforms(rates, gradient, value, state + 1);
  }
  constexpr void rescale(Scalar lr_factor, Scalar decay_factor) {
    rates.lr *= lr_factor;
    rates.weight_decay *= decay_factor;
  }
};
/// On a device of its own, nothing waits: all parameter groups in one pass, which takes call.scale's factor into the gradient.
template <class Scalar, class Device, class Transforms>
requires(!on_host<Device>) void write_gradient(const UpdateCall<Scalar, Device>& call, const Transforms& transforms,
                                               Scalar* const* state, Scalar* into) {
  WriteArguments<Scalar, Transforms> arguments{call, transforms, rates_of(call), {into}};
  for (int k = 0; k < Transforms::arrays; ++k) arguments.array_of[1 + k] = state[k];
  ops::update<Device>(arguments);
}

/// into[i] = what `transforms` make of the scaled sum of the workers' gradients, over the call's range; `into` may be one of
/// those arrays. `state`: the transforms' arrays.
template <class Scalar, class Device, class Transforms>
requires(on_host<Device>) void write_gradient(const UpdateCall<Scalar, Device>& call, const Transforms& transforms,
                                              Scalar* const* state, Scalar* into) {
  const UpdateRates<Scalar> at = rates_of(call);
  constexpr long block = 256;
  for (long first = call.begin; first < call.end; first += block) {
    const long n = std::min(block, call.end - first);
    Scalar sum[block];
    std::copy_n(call.gradients[0] + first, n, sum);
    for (int w = 1; w < call.gradient_count; ++w)
      for (long i = 0; i < n; ++i) sum[i] += call.gradients[w][first + i];
    for (long i = 0; i < n; ++i) sum[i] *= call.gradient_scale;
    if constexpr (!std::same_as<Transforms, NoTransform>)
      for (long i = 0; i < n; ++i) {
        Scalar own[Transforms::arrays + 1] = {};
        for (int k = 0; k < Transforms::arrays; ++k) own[k] = state[k][first + i];
        sum[i] = transforms(at, sum[i], call.parameters[first + i], own);
        for (int k = 0; k < Transforms::arrays; ++k) state[k][first + i] = own[k];
      }
    std::copy_n(sum, n, into + first);
  }
}

}  // namespace skein::inline SKEIN_ABI::optim::detail
