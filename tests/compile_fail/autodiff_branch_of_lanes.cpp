// expect: a function of dual numbers runs over vectors, whose lanes differ: write where(x < 0, a, b) for ?: and if
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/elementwise.hpp>
#include <skein/skein.hpp>

namespace sk = skein;

struct Leaky {
  template <class T> constexpr T operator()(const T& x) const {
#ifndef SKEIN_TWIN
    return x < T(0) ? x * T(0.1f) : x;
#else
    return where(x < T(0), x * T(0.1f), x);
#endif
  }
};

void program(const float* x, float* y) { sk::ops::map<sk::Cpu>(sk::nn::detail::Value<Leaky>{}, 4, x, y); }
