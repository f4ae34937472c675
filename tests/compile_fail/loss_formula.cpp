// expect: a loss's formula is called with an element, template <class T> constexpr T operator()(T output, T target) const, or with a row
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/loss/own_loss.hpp>

struct Squares {
#ifdef SKEIN_TWIN
  template <class T> constexpr T operator()(T output, T target) const { return (output - target) * (output - target); }
#else
  constexpr float operator()(float output, float target) const { return (output - target) * (output - target); }
#endif
};

int main() {
  skein::nn::OwnLoss loss{Squares{}};
  (void)loss;
}
