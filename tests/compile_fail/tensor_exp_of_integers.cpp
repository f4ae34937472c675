// expect: a function of real numbers is called with integers: convert them with cast<float>() first
// SPDX-License-Identifier: Apache-2.0
#include <skein/tensor/create.hpp>
#include <skein/tensor/reduce.hpp>

namespace sk = skein;

void program(sk::Tensor<float, 1>& a, sk::Tensor<float, 1>& b, sk::Tensor<float, 2>& m, sk::Tensor<double, 1>& d,
             sk::TensorView<float, 1, sk::Cuda> gpu) {
  static_cast<void>(a), static_cast<void>(b), static_cast<void>(m), static_cast<void>(d), static_cast<void>(gpu);
#ifndef SKEIN_TWIN
  a = exp(argmax(m, 1));
#else
  a = exp(sk::cast<float>(argmax(m, 1)));
#endif
}
