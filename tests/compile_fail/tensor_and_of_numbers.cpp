// expect: && and || take masks: compare expressions to get them, (a != 0) && (b != 0)
// SPDX-License-Identifier: Apache-2.0
#include <skein/tensor/create.hpp>
#include <skein/tensor/reduce.hpp>

namespace sk = skein;

void program(sk::Tensor<float, 1>& a, sk::Tensor<float, 1>& b, sk::Tensor<float, 2>& m, sk::Tensor<double, 1>& d,
             sk::TensorView<float, 1, sk::Cuda> gpu) {
  static_cast<void>(a), static_cast<void>(b), static_cast<void>(m), static_cast<void>(d), static_cast<void>(gpu);
#ifndef SKEIN_TWIN
  a = where(a && b, a, b);
#else
  a = where(a != 0 && b != 0, a, b);
#endif
}
