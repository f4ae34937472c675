// expect: a sparse matrix and a dense operand on different devices: move one of them with .to<Device>() first
// SPDX-License-Identifier: Apache-2.0
#include <skein/ops/sparse_product.hpp>

namespace sk = skein;

void program(const sk::Csr<void>& a, const sk::Tensor<float, 1>& x, sk::TensorView<const float, 1, sk::Cuda> gpu) {
  static_cast<void>(x), static_cast<void>(gpu);
#ifndef SKEIN_TWIN
  mv(a, gpu);
#else
  mv(a, x);
#endif
}
