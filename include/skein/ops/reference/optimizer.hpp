// SPDX-License-Identifier: Apache-2.0
// The optimizers' passes over flat memory: what each does to one element, PyTorch's formulas, written once for every device, and
// plain loops around that: the oracle of the tests, and what runs without xsimd. A pass reads the gradients of all workers, adds
// them up, and updates parameters and state at once.
//
//     p the arguments (in formulas a parameter), g a gradient, lr the learning rate; i an element of the arena, k an array of
//     the state
#pragma once
#include <cmath>

#include "../step_scale.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// A part of the arena whose rate and weight decay are multiplied by factors of its own.
struct RangeFactors {
  long begin = 0, end = 0;
  float lr_factor = 1, decay_factor = 1;
  int frozen = 0;
};

/// What every pass reads and writes: elements [begin, end) of arrays of the same layout. Gaps hold zero, and keep it.
template <class Scalar_> struct UpdateArguments {
  using Scalar = Scalar_;
  Scalar* parameters = nullptr;
  const Scalar* const* gradients = nullptr;  ///< one array a worker, to be summed
  int gradient_count = 0;
  Scalar gradient_scale = 1;         ///< factor of the sum: the divisor and the clipping
  const StepScale* scale = nullptr;  ///< one more factor, in the device's memory, and whether to skip; null: none
  const RangeFactors* ranges =
      nullptr;  ///< in a device's memory, sorted: elements outside of them, and frozen ones, stay; null: one
  int range_count = 0;
  long begin = 0, end = 0;
};

/// g = scale * sum + decay * p; m = momentum * m + keep * g; p -= lr * (nesterov ? g + momentum * m : m).
template <class Scalar> struct SgdArguments : UpdateArguments<Scalar> {
  Scalar* momenta = nullptr;  ///< null: no momentum, p -= lr * g
  Scalar lr = 0, momentum = 0, keep = 1, decay = 0;
  bool nesterov = false;

  static constexpr int arrays = 1;
  constexpr Scalar* array(int) const { return momenta; }
  /// One element: its scaled gradient, itself, its state (by array(); those that are null are not looked at).
  constexpr void element(Scalar g, Scalar& value, Scalar* state) const {
    g += decay * value;
    if (momenta) {
      state[0] = momentum * state[0] + keep * g;
      g = nesterov ? g + momentum * state[0] : state[0];
    }
    value -= lr * g;
  }
  /// Multiplies rate and decay by the factors of a range of parameters.
  constexpr void rescale(Scalar lr_factor, Scalar decay_factor) {
    lr *= lr_factor;
    decay *= decay_factor;
  }
};

/// p *= shrink; g = scale * sum + decay * p; m, v: running means of g and g^2; p -= rate * m / (sqrt(v) * correction + epsilon).
template <class Scalar> struct AdamArguments : UpdateArguments<Scalar> {
  Scalar* first = nullptr;
  Scalar* second = nullptr;
  Scalar* greatest = nullptr;                ///< AMSGrad: the greatest second moment so far; null: plain Adam
  Scalar fresh1 = 1, beta2 = 0, fresh2 = 1;  ///< 1 - beta1; beta2, 1 - beta2 (made in double: 1 - 0.999f is not 0.001f)
  Scalar epsilon = 0, decay = 0, shrink = 1;
  Scalar rate = 0;        ///< lr / (1 - beta1^step)
  Scalar correction = 1;  ///< 1 / sqrt(1 - beta2^step)

  static constexpr int arrays = 3;
  constexpr Scalar* array(int k) const { return k == 0 ? first : k == 1 ? second : greatest; }
  constexpr void element(Scalar g, Scalar& value, Scalar* state) const {
    value *= shrink;
    g += decay * value;
    state[0] += fresh1 * (g - state[0]);
    state[1] = beta2 * state[1] + fresh2 * g * g;
    Scalar v = state[1];
    if (greatest) v = state[2] = state[2] > v ? state[2] : v;
    value -= rate * state[0] / (std::sqrt(v) * correction + epsilon);
  }
  constexpr void rescale(Scalar lr_factor, Scalar decay_factor) {
    rate *= lr_factor;
    decay *= decay_factor;
    shrink = 1 - (1 - shrink) * lr_factor * decay_factor;
  }
};

/// g = scale * sum + decay * p; s: running mean of g^2 (less the square of a, the running mean of g, where centered);
/// d = g / (sqrt(s) + epsilon); p -= lr * (b = momentum * b + d).
template <class Scalar> struct RmsPropArguments : UpdateArguments<Scalar> {
  Scalar* square = nullptr;
  Scalar* average = nullptr;                                                  ///< null: not centered
  Scalar* momenta = nullptr;                                                  ///< null: no momentum
  Scalar lr = 0, alpha = 0, fresh = 1, epsilon = 0, momentum = 0, decay = 0;  // fresh: 1 - alpha

  static constexpr int arrays = 3;
  constexpr Scalar* array(int k) const { return k == 0 ? square : k == 1 ? average : momenta; }
  constexpr void element(Scalar g, Scalar& value, Scalar* state) const {
    g += decay * value;
    Scalar s = state[0] = alpha * state[0] + fresh * g * g;
    if (average) {
      state[1] += fresh * (g - state[1]);
      s = std::fma(-state[1], state[1], s);  // rounded once: an infinite s stays one beside a square that overflows
    }
    Scalar d = g / (std::sqrt(s > 0 ? s : Scalar(0)) + epsilon);
    if (momenta) d = state[2] = momentum * state[2] + d;
    value -= lr * d;
  }
  constexpr void rescale(Scalar lr_factor, Scalar decay_factor) {
    lr *= lr_factor;
    decay *= decay_factor;
  }
};

/// g = scale * sum + decay * p; s += g^2; p -= lr * g / (sqrt(initial + s) + epsilon).
template <class Scalar> struct AdagradArguments : UpdateArguments<Scalar> {
  Scalar* sum = nullptr;
  Scalar lr = 0, initial = 0, epsilon = 0, decay = 0;  // lr: of this step

  static constexpr int arrays = 1;
  constexpr Scalar* array(int) const { return sum; }
  constexpr void element(Scalar g, Scalar& value, Scalar* state) const {
    g += decay * value;
    state[0] += g * g;
    value -= lr * (g / (std::sqrt(initial + state[0]) + epsilon));
  }
  constexpr void rescale(Scalar lr_factor, Scalar decay_factor) {
    lr *= lr_factor;
    decay *= decay_factor;
  }
};

/// p -= lr * (sign(m + fresh1 * (g - m)) + decay * p); m += fresh2 * (g - m).
template <class Scalar> struct LionArguments : UpdateArguments<Scalar> {
  Scalar* momenta = nullptr;
  Scalar lr = 0, fresh1 = 1, fresh2 = 1, decay = 0;  // fresh: 1 - beta

  static constexpr int arrays = 1;
  constexpr Scalar* array(int) const { return momenta; }
  constexpr void element(Scalar g, Scalar& value, Scalar* state) const {
    const Scalar mixed = state[0] + fresh1 * (g - state[0]);
    const Scalar direction = mixed > 0 ? Scalar(1) : mixed < 0 ? Scalar(-1) : mixed;  // 0, or a NaN, which has to be seen
    value -= lr * (direction + decay * value);
    state[0] += fresh2 * (g - state[0]);
  }
  constexpr void rescale(Scalar lr_factor, Scalar decay_factor) {
    lr *= lr_factor;
    decay *= decay_factor;
  }
};

namespace reference {
/// Element i of the workers' gradients, added up in their order and scaled.
template <class Scalar> Scalar summed(const UpdateArguments<Scalar>& p, long i) {
  Scalar g = 0;
  for (int w = 0; w < p.gradient_count; ++w) g += p.gradients[w][i];
  return g * p.gradient_scale;
}

/// Any pass: element after element.
template <class Call> void update(const Call& p) {
  using Scalar = typename Call::Scalar;
  for (long i = p.begin; i < p.end; ++i) {
    Scalar state[Call::arrays] = {};
    for (int k = 0; k < Call::arrays; ++k)
      if (p.array(k)) state[k] = p.array(k)[i];
    p.element(summed<Scalar>(p, i), p.parameters[i], state);
    for (int k = 0; k < Call::arrays; ++k)
      if (p.array(k)) p.array(k)[i] = state[k];
  }
}
/// A step of Sgd, by a plain loop.
template <class Scalar> void sgd(const SgdArguments<Scalar>& p) { update(p); }
/// A step of Adam, by a plain loop.
template <class Scalar> void adam(const AdamArguments<Scalar>& p) { update(p); }
/// A step of RmsProp, by a plain loop.
template <class Scalar> void rms_prop(const RmsPropArguments<Scalar>& p) { update(p); }

/// The sum of the squares of the summed gradient's elements, in double, in their order.
template <class Scalar> double sum_of_squares(const UpdateArguments<Scalar>& p) {
  double sum = 0;
  for (long i = p.begin; i < p.end; ++i) {
    const double g = static_cast<double>(summed<Scalar>(p, i));
    sum += g * g;
  }
  return sum;
}
}  // namespace reference

}  // namespace skein::inline SKEIN_ABI::ops
