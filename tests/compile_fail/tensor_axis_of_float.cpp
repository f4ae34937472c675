// expect: max: an axis is a whole number; the larger and the smaller of two values are maximum and minimum
// SPDX-License-Identifier: Apache-2.0
#include <skein/tensor/create.hpp>
#include <skein/tensor/reduce.hpp>

namespace sk = skein;

void program(sk::Tensor<float, 2>& a) {
#ifndef SKEIN_TWIN
  a = max(a, 0.5f);
#else
  a = maximum(a, 0.5f);
#endif
}
