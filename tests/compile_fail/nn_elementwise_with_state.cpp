// expect: Elementwise<F>: F must be an empty function object
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/elementwise.hpp>

struct Scale {
#ifdef SKEIN_TWIN
  static constexpr float factor = 2;
#else
  float factor = 2;
#endif
  template <class T> constexpr T operator()(T x) const { return factor * x; }
};

void run(skein::nn::Frame<float, skein::Cpu>& frame) { skein::nn::Elementwise<Scale>::forward<skein::Shape<7>>(frame); }
