// SPDX-License-Identifier: Apache-2.0
// The optimizers' passes over flat memory as plain loops: the oracle of the tests, and what runs without xsimd. Each reads
// the gradients of all workers, adds them up, and updates parameters and state in one pass; PyTorch's formulas.
#pragma once
#include <cmath>

#include "../step_scale.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// What every pass reads and writes: elements [begin, end) of arrays of the same layout. Gaps hold zero, and keep it.
template <class Scalar> struct UpdatePass {
  Scalar* parameters = nullptr;
  const Scalar* const* gradients = nullptr;         ///< one array a worker, to be summed
  int gradient_count = 0;
  Scalar gradient_scale = 1;                        ///< factor of the sum: the divisor and the clipping
  const StepScale* scale = nullptr;                 ///< one more factor, in the device's memory, and whether to skip; null: none
  long begin = 0, end = 0;
};

/// g = scale * sum + decay * p; m = momentum * m + keep * g; p -= lr * (nesterov ? g + momentum * m : m).
template <class Scalar> struct SgdPass : UpdatePass<Scalar> {
  Scalar* momenta = nullptr;                        ///< null: no momentum, p -= lr * g
  Scalar lr = 0, momentum = 0, keep = 1, decay = 0;
  bool nesterov = false;
};

/// p *= shrink; g = scale * sum + decay * p; m, v: running means of g and g^2; p -= rate * m / (sqrt(v) * correction + epsilon).
template <class Scalar> struct AdamPass : UpdatePass<Scalar> {
  Scalar* first = nullptr;
  Scalar* second = nullptr;
  Scalar* greatest = nullptr;                       ///< AMSGrad: the greatest second moment so far; null: plain Adam
  Scalar fresh1 = 1, beta2 = 0, fresh2 = 1;         ///< 1 - beta1; beta2, 1 - beta2 (made in double: 1 - 0.999f is not 0.001f)
  Scalar epsilon = 0, decay = 0, shrink = 1;
  Scalar rate = 0;                                  ///< lr / (1 - beta1^step)
  Scalar correction = 1;                            ///< 1 / sqrt(1 - beta2^step)
};

/// g = scale * sum + decay * p; s: running mean of g^2 (less the square of a, the running mean of g, where centered);
/// d = g / (sqrt(s) + epsilon); p -= lr * (b = momentum * b + d).
template <class Scalar> struct RmsPropPass : UpdatePass<Scalar> {
  Scalar* square = nullptr;
  Scalar* average = nullptr;                        ///< null: not centered
  Scalar* momenta = nullptr;                        ///< null: no momentum
  Scalar lr = 0, alpha = 0, fresh = 1, epsilon = 0, momentum = 0, decay = 0;   // fresh: 1 - alpha
};

namespace reference {
template <class Scalar> Scalar summed(const UpdatePass<Scalar>& p, long i) {
  Scalar g = 0;
  for (int w = 0; w < p.gradient_count; ++w) g += p.gradients[w][i];
  return g * p.gradient_scale;
}

template <class Scalar> void sgd(const SgdPass<Scalar>& p) {
  for (long i = p.begin; i < p.end; ++i) {
    Scalar g = summed<Scalar>(p, i) + p.decay * p.parameters[i];
    if (p.momenta) {
      p.momenta[i] = p.momentum * p.momenta[i] + p.keep * g;
      g = p.nesterov ? g + p.momentum * p.momenta[i] : p.momenta[i];
    }
    p.parameters[i] -= p.lr * g;
  }
}

template <class Scalar> void adam(const AdamPass<Scalar>& p) {
  for (long i = p.begin; i < p.end; ++i) {
    const Scalar value = p.parameters[i] * p.shrink, g = summed<Scalar>(p, i) + p.decay * value;
    p.first[i] += p.fresh1 * (g - p.first[i]);
    p.second[i] = p.beta2 * p.second[i] + p.fresh2 * g * g;
    Scalar v = p.second[i];
    if (p.greatest) v = p.greatest[i] = p.greatest[i] > v ? p.greatest[i] : v;
    p.parameters[i] = value - p.rate * p.first[i] / (std::sqrt(v) * p.correction + p.epsilon);
  }
}

template <class Scalar> void rms_prop(const RmsPropPass<Scalar>& p) {
  for (long i = p.begin; i < p.end; ++i) {
    const Scalar g = summed<Scalar>(p, i) + p.decay * p.parameters[i];
    Scalar s = p.square[i] = p.alpha * p.square[i] + p.fresh * g * g;
    if (p.average) {
      p.average[i] += p.fresh * (g - p.average[i]);
      s -= p.average[i] * p.average[i];
    }
    Scalar d = g / (std::sqrt(s > 0 ? s : Scalar(0)) + p.epsilon);
    if (p.momenta) d = p.momenta[i] = p.momentum * p.momenta[i] + d;
    p.parameters[i] -= p.lr * d;
  }
}

template <class Scalar> double sum_of_squares(const UpdatePass<Scalar>& p) {
  double sum = 0;
  for (long i = p.begin; i < p.end; ++i) {
    const double g = static_cast<double>(summed<Scalar>(p, i));
    sum += g * g;
  }
  return sum;
}
}  // namespace reference

}  // namespace skein::inline SKEIN_ABI::ops
