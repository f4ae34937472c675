// expect: Tensor: extents are given as sk::dims(2, 3), values in braces: {{1, 2}, {3, 4}}
// SPDX-License-Identifier: Apache-2.0
#include <skein/tensor/create.hpp>
#include <skein/tensor/reduce.hpp>

namespace sk = skein;

void program(sk::Tensor<float, 2>& a) {
#ifndef SKEIN_TWIN
  sk::Tensor<float, 2> t(2, 3);
  a = t;
#else
  sk::Tensor<float, 2> t(sk::dims(2, 3));
  a = t;
#endif
}
