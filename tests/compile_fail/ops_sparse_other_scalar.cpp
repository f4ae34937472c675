// expect: a sparse matrix and a dense operand of different scalar types: convert the dense one with cast<Scalar>() first
// SPDX-License-Identifier: Apache-2.0
#include <skein/ops/sparse_product.hpp>

namespace sk = skein;

void program(const sk::Csr<float>& a, const sk::Tensor<float, 1>& x, const sk::Tensor<double, 1>& d) {
  static_cast<void>(x), static_cast<void>(d);
#ifndef SKEIN_TWIN
  mv(a, d);
#else
  mv(a, x);
#endif
}
