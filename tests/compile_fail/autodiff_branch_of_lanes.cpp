// expect: a function of dual numbers runs over vectors, whose lanes differ: write where(x < 0, a, b) for ?: and if
// SPDX-License-Identifier: Apache-2.0
#include <skein/autodiff/dual.hpp>

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

using Lanes = sk::Dual<xsimd::batch<float>>;  // as a layer calls it

Lanes program(const Lanes& x) { return Leaky{}(x); }
