// expect: Elementwise<F>: F lacks: template <class T> constexpr T operator()(T x) const
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/elementwise.hpp>

struct Swish {
#ifdef SKEIN_TWIN
  template <class T> constexpr T operator()(T x) const { return x / (T(1) + exp(-x)); }
#else
  float operator()(float x) const { return x / (1 + std::exp(-x)); }
#endif
};

void run(skein::nn::Frame<float, skein::Cpu>& frame) {
  skein::nn::Elementwise<Swish>::forward<skein::Shape<7>>(frame);
  skein::nn::Elementwise<Swish>::backward<skein::Shape<7>>(frame);
}
