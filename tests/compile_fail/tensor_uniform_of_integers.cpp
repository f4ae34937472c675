// expect: random values are float or double: cast<Scalar>(floor(...)) of those makes integers
// SPDX-License-Identifier: Apache-2.0
#include <skein/tensor/create.hpp>
#include <skein/tensor/reduce.hpp>

namespace sk = skein;

void program(sk::Tensor<float, 1>& a, sk::Tensor<float, 1>& b, sk::Tensor<float, 2>& m, sk::Tensor<double, 1>& d,
             sk::TensorView<float, 1, sk::Cuda> gpu) {
  static_cast<void>(a), static_cast<void>(b), static_cast<void>(m), static_cast<void>(d), static_cast<void>(gpu);
#ifndef SKEIN_TWIN
  a = sk::cast<float>(sk::uniform<int>(sk::Seed{1}, sk::dims(3), 0, 10));
#else
  a = floor(sk::uniform<float>(sk::Seed{1}, sk::dims(3), 0, 10));
#endif
}
