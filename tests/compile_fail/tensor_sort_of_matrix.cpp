// expect: sort and argsort take a vector: flatten() a tensor of higher rank, or sort its rows one by one
// SPDX-License-Identifier: Apache-2.0
#include <skein/tensor/sort.hpp>

namespace sk = skein;

void program(const sk::Tensor<float, 2>& m) {
#ifndef SKEIN_TWIN
  sk::sort(m);
#else
  sk::sort(m.flatten());
#endif
}
