// expect: OwnLoss: weights of classes and ignored labels belong to a formula of a row; one of an element has targets, and weighs them itself
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/loss/own_loss.hpp>

struct Squares {
  template <class T> constexpr T operator()(T output, T target) const { return (output - target) * (output - target); }
};

int main() {
#ifdef SKEIN_TWIN
  skein::nn::OwnLoss loss{Squares{}};
#else
  skein::nn::OwnLoss loss{Squares{}, {.class_weights = {1, 2}}};
#endif
  (void)loss;
}
