// expect: the target of an assignment is a view of const values: take the view of a tensor that is not const
// SPDX-License-Identifier: Apache-2.0
#include <skein/tensor/create.hpp>
#include <skein/tensor/reduce.hpp>

namespace sk = skein;

void program(sk::Tensor<float, 1>& a, sk::Tensor<float, 1>& b, sk::Tensor<float, 2>& m, sk::Tensor<double, 1>& d,
             sk::TensorView<float, 1, sk::Cuda> gpu) {
  static_cast<void>(a), static_cast<void>(b), static_cast<void>(m), static_cast<void>(d), static_cast<void>(gpu);
#ifndef SKEIN_TWIN
  const auto& c = a;
  c(sk::range(0, 2)) = b(sk::range(0, 2));
#else
  a(sk::range(0, 2)) = b(sk::range(0, 2));
#endif
}
