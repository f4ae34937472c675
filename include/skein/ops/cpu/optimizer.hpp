// SPDX-License-Identifier: Apache-2.0
// The optimizers' passes in vectors. What is left at the end of a range goes through the same vector code on a copy, so that
// an element's bits do not depend on how the arena was cut among workers. Without xsimd it is the reference.
//
//     p the arguments, g a gradient, lr the learning rate; i an element of the arena, w a worker; V a vector of Scalar
#pragma once
#include "../reference/optimizer.hpp"

#if SKEIN_WITH_XSIMD
#include <limits>
#include <type_traits>

#include "vector.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

namespace detail {
/// a / b. In 16 lanes of float the divider is the bottleneck of Adam's pass (a root and a quotient a vector): there, the 14-bit
/// reciprocal and one Newton step on the quotient, right to the last bit or two. An infinite b is the greatest finite one: the
/// step would multiply it by 0.
template <class Scalar>
SKEIN_ALWAYS_INLINE xsimd::batch<Scalar> quotient(const xsimd::batch<Scalar>& a, const xsimd::batch<Scalar>& b) {
  using V = xsimd::batch<Scalar>;
  if constexpr (std::is_same_v<Scalar, float> && V::size == 16) {
    const V divisor = xsimd::min(V(std::numeric_limits<float>::max()), b);  // of a NaN: b
    const V reciprocal = xsimd::reciprocal(divisor), guess = a * reciprocal;
    return fused(guess, V(1.0f) - divisor * reciprocal, guess);
  } else {
    return a / b;
  }
}

/// The sum of the workers' gradients. Count: their number where it is 1 or 2, else 0.
template <int Count, class Scalar>
SKEIN_ALWAYS_INLINE xsimd::batch<Scalar> gradient_sum(const Scalar* first, const Scalar* second,
                                                      const UpdateArguments<Scalar>& arguments, long i) {
  using V = xsimd::batch<Scalar>;
  V sum = V::load_unaligned(first + i);
  if constexpr (Count == 2) sum += V::load_unaligned(second + i);
  if constexpr (Count == 0)
    for (int w = 1; w < arguments.gradient_count; ++w) sum += V::load_unaligned(arguments.gradients[w] + i);
  return sum;
}

/// One vector: step(gradient, parameter, state), all but the gradient by reference.
template <int States, class Scalar, class Step>
SKEIN_ALWAYS_INLINE void update_vector(const Step& step, const xsimd::batch<Scalar>& gradient, Scalar* parameters,
                                       Scalar* const (&arrays)[States + 1], long i) {
  using V = xsimd::batch<Scalar>;
  V value = V::load_unaligned(parameters + i), state[States + 1];
  for (int k = 0; k < States; ++k) state[k] = V::load_unaligned(arrays[k] + i);
  step(gradient, value, state);
  value.store_unaligned(parameters + i);
  for (int k = 0; k < States; ++k) state[k].store_unaligned(arrays[k] + i);
}

/// Runs the step over the pass's range. Pointers are copied first: the stores of the loop may not alias the copies.
template <int Count, int States, class Scalar, class Step>
SKEIN_NOINLINE void each_vector(const UpdateArguments<Scalar>& arguments, Scalar* const (&arrays)[States + 1], const Step step) {
  using V = xsimd::batch<Scalar>;
  constexpr long lanes = static_cast<long>(V::size);
  const V scale(arguments.gradient_scale);
  Scalar *const parameters = arguments.parameters, *state[States + 1] = {};
  for (int k = 0; k < States; ++k) state[k] = arrays[k];
  const Scalar *const first = arguments.gradients[0], *const second = Count == 2 ? arguments.gradients[1] : nullptr;
  const long end = arguments.end;
  long i = arguments.begin;
  for (; i + lanes <= end; i += lanes)
    update_vector<States>(step, gradient_sum<Count>(first, second, arguments, i) * scale, parameters, state, i);
  if (i == end) return;
  const long left = end - i;
  alignas(64) Scalar copies[States + 2][V::size] = {};  // parameter, gradient, state
  Scalar* copied[States + 1] = {};
  for (int k = 0; k < States; ++k) copied[k] = copies[2 + k];
  for (long j = 0; j < left; ++j) {
    copies[0][j] = parameters[i + j];
    copies[1][j] = first[i + j];
    for (int w = 1; w < arguments.gradient_count; ++w) copies[1][j] += arguments.gradients[w][i + j];
    for (int k = 0; k < States; ++k) copied[k][j] = state[k][i + j];
  }
  update_vector<States>(step, V::load_aligned(copies[1]) * scale, copies[0], copied, 0);
  for (long j = 0; j < left; ++j) {
    parameters[i + j] = copies[0][j];
    for (int k = 0; k < States; ++k) state[k][i + j] = copied[k][j];
  }
}

/// Runs each_vector(), with the number of gradients made a constant where it is small.
template <int States, class Scalar, class Step>
void each_element(const UpdateArguments<Scalar>& arguments, Scalar* const (&arrays)[States + 1], Step step) {
  if (arguments.gradient_count == 1) each_vector<1, States>(arguments, arrays, step);
  else if (arguments.gradient_count == 2) each_vector<2, States>(arguments, arrays, step);
  else each_vector<0, States>(arguments, arrays, step);
}
}  // namespace detail

/// Does what reference::sgd does, in vectors.
template <class Scalar> void sgd(const SgdArguments<Scalar>& p) {
  using V = xsimd::batch<Scalar>;
  const V lr(-p.lr), decay(p.decay), momentum(p.momentum), keep(p.keep);
  if (!p.momenta) {
    Scalar* const none[1] = {nullptr};
    detail::each_element<0>(p, none, [=](V g, V& value, V*) { value = fused(lr, fused(decay, value, g), value); });
    return;
  }
  // g + momentum * m (Nesterov) or m, without a branch in the loop.
  const V of_gradient(p.nesterov ? Scalar(1) : Scalar(0)), of_momentum(p.nesterov ? p.momentum : Scalar(1));
  Scalar* const state[2] = {p.momenta, nullptr};
  detail::each_element<1>(p, state, [=](V g, V& value, V* s) {
    g = fused(decay, value, g);
    s[0] = fused(momentum, s[0], keep * g);
    value = fused(lr, fused(of_gradient, g, of_momentum * s[0]), value);
  });
}

/// Does what reference::adam does, in vectors.
template <class Scalar> void adam(const AdamArguments<Scalar>& p) {
  using V = xsimd::batch<Scalar>;
  const V fresh1(p.fresh1), beta2(p.beta2), fresh2(p.fresh2), epsilon(p.epsilon), decay(p.decay), shrink(p.shrink), rate(-p.rate),
      correction(p.correction);
  const auto moments = [=](V g, V* s) {
    s[0] = fused(fresh1, g - s[0], s[0]);
    s[1] = fused(fresh2 * g, g, beta2 * s[1]);
  };
  const auto move = [=](V& value, V first, V second) {
    value = fused(rate, detail::quotient<Scalar>(first, fused(xsimd::sqrt(second), correction, epsilon)), value);
  };
  if (p.greatest) {
    Scalar* const state[4] = {p.first, p.second, p.greatest, nullptr};
    detail::each_element<3>(p, state, [=](V g, V& value, V* s) {
      value = value * shrink;
      moments(fused(decay, value, g), s);
      s[2] = xsimd::max(s[2], s[1]);
      move(value, s[0], s[2]);
    });
    return;
  }
  Scalar* const state[3] = {p.first, p.second, nullptr};
  if (p.decay != 0 || p.shrink != 1) {
    detail::each_element<2>(p, state, [=](V g, V& value, V* s) {
      value = value * shrink;
      moments(fused(decay, value, g), s);
      move(value, s[0], s[1]);
    });
  } else {  // every operation counts: without the two of the weight decay
    detail::each_element<2>(p, state, [=](V g, V& value, V* s) {
      moments(g, s);
      move(value, s[0], s[1]);
    });
  }
}

/// Does what reference::rms_prop does, in vectors.
template <class Scalar> void rms_prop(const RmsPropArguments<Scalar>& p) {
  using V = xsimd::batch<Scalar>;
  const V lr(-p.lr), alpha(p.alpha), fresh(p.fresh), epsilon(p.epsilon), momentum(p.momentum), decay(p.decay), zero(Scalar(0));
  const auto square = [=](V& g, V value, V& s) {
    g = fused(decay, value, g);
    s = fused(fresh * g, g, alpha * s);
  };
  const auto center = [=](V g, V s, V& average) {
    average = fused(fresh, g - average, average);
    return xsimd::max(fused(-average, average, s), zero);
  };
  if (p.average && p.momenta) {
    Scalar* const state[4] = {p.square, p.average, p.momenta, nullptr};
    detail::each_element<3>(p, state, [=](V g, V& value, V* s) {
      square(g, value, s[0]);
      s[2] = fused(momentum, s[2], g / (xsimd::sqrt(center(g, s[0], s[1])) + epsilon));
      value = fused(lr, s[2], value);
    });
  } else if (p.average) {
    Scalar* const state[3] = {p.square, p.average, nullptr};
    detail::each_element<2>(p, state, [=](V g, V& value, V* s) {
      square(g, value, s[0]);
      value = fused(lr, g / (xsimd::sqrt(center(g, s[0], s[1])) + epsilon), value);
    });
  } else if (p.momenta) {
    Scalar* const state[3] = {p.square, p.momenta, nullptr};
    detail::each_element<2>(p, state, [=](V g, V& value, V* s) {
      square(g, value, s[0]);
      s[1] = fused(momentum, s[1], g / (xsimd::sqrt(s[0]) + epsilon));
      value = fused(lr, s[1], value);
    });
  } else {
    Scalar* const state[2] = {p.square, nullptr};
    detail::each_element<1>(p, state, [=](V g, V& value, V* s) {
      square(g, value, s[0]);
      value = fused(lr, g / (xsimd::sqrt(s[0]) + epsilon), value);
    });
  }
}

/// Does what reference::update of an AdagradArguments does, in vectors.
template <class Scalar> void adagrad(const AdagradArguments<Scalar>& p) {
  using V = xsimd::batch<Scalar>;
  const V lr(-p.lr), initial(p.initial), epsilon(p.epsilon), decay(p.decay);
  Scalar* const state[2] = {p.sum, nullptr};
  detail::each_element<1>(p, state, [=](V g, V& value, V* s) {
    g = fused(decay, value, g);
    s[0] = fused(g, g, s[0]);
    value = fused(lr, g / (xsimd::sqrt(initial + s[0]) + epsilon), value);
  });
}

/// Does what reference::update of a LionArguments does, in vectors.
template <class Scalar> void lion(const LionArguments<Scalar>& p) {
  using V = xsimd::batch<Scalar>;
  const V lr(-p.lr), fresh1(p.fresh1), fresh2(p.fresh2), decay(p.decay), zero(Scalar(0)), one(Scalar(1));
  Scalar* const state[2] = {p.momenta, nullptr};
  detail::each_element<1>(p, state, [=](V g, V& value, V* s) {
    const V mixed = fused(fresh1, g - s[0], s[0]);
    const V direction = xsimd::select(mixed > zero, one, xsimd::select(mixed < zero, -one, mixed));  // of a NaN: a NaN
    value = fused(lr, fused(decay, value, direction), value);
    s[0] = fused(fresh2, g - s[0], s[0]);
  });
}

/// Whole vectors are squared in the scalar type and added up in double every 64 vectors: the relative error stays below
/// 64 epsilon whatever the length. Where a square is too large for the type, those are taken in double one by one; one that is
/// too small for it (of a float below 1e-22) counts as nothing.
template <class Scalar> double sum_of_squares(const UpdateArguments<Scalar>& p) {
  using V = xsimd::batch<Scalar>;
  constexpr long lanes = static_cast<long>(V::size);
  const V scale(p.gradient_scale);
  double sum = 0;
  long i = p.begin;
  while (i + lanes <= p.end) {
    const long first = i;
    V squares(Scalar(0));
    for (int k = 0; k < 64 && i + lanes <= p.end; ++k, i += lanes) {
      const V g = detail::gradient_sum<0, Scalar>(p.gradients[0], nullptr, p, i) * scale;
      squares = fused(g, g, squares);
    }
    const Scalar part = xsimd::hadd(squares);
    if (part <= std::numeric_limits<Scalar>::max()) [[likely]] {
      sum += static_cast<double>(part);
    } else {
      UpdateArguments<Scalar> again = p;
      again.begin = first, again.end = i;
      sum += reference::sum_of_squares(again);
    }
  }
  UpdateArguments<Scalar> rest = p;
  rest.begin = i;
  return sum + reference::sum_of_squares(rest);
}
#if SKEIN_COMPILED
extern template void sgd<float>(const SgdArguments<float>&);
extern template void adam<float>(const AdamArguments<float>&);
extern template double sum_of_squares<float>(const UpdateArguments<float>&);
#endif

}  // namespace skein::inline SKEIN_ABI::ops::cpu

#else

namespace skein::inline SKEIN_ABI::ops::cpu {
template <class Scalar> void adagrad(const AdagradArguments<Scalar>& p) { reference::update(p); }
template <class Scalar> void lion(const LionArguments<Scalar>& p) { reference::update(p); }
using reference::adam;
using reference::rms_prop;
using reference::sgd;
using reference::sum_of_squares;
}  // namespace skein::inline SKEIN_ABI::ops::cpu

#endif
