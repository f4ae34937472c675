// expect: Tensor: these extents are of another rank than the tensor: sk::dims takes one number an axis
// SPDX-License-Identifier: Apache-2.0
#include <skein/tensor/create.hpp>
#include <skein/tensor/reduce.hpp>

namespace sk = skein;

void program(sk::Tensor<float, 2>& a) {
#ifndef SKEIN_TWIN
  sk::Tensor<float, 2> t(sk::dims(3));
  a = t;
#else
  sk::Tensor<float, 2> t(sk::dims(3, 3));
  a = t;
#endif
}
