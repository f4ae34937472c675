// expect: backward() starts at a number: take sum() or mean() first, or give backward(seed) one value for each element
// SPDX-License-Identifier: Apache-2.0
#include <skein/autodiff/variable.hpp>

int main() {
  skein::autodiff::Variable x(skein::Tensor<float, 1>{1.0f, 2.0f});
  const auto y = x * x;
#ifndef SKEIN_TWIN
  y.backward();
#else
  sum(y).backward();
#endif
}
