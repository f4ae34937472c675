// expect: the rows and columns of the entries of a sparse matrix are integers: cast<long>() makes such of a tensor
// SPDX-License-Identifier: Apache-2.0
#include <skein/tensor/sparse.hpp>

#include <vector>

namespace sk = skein;

#ifndef SKEIN_TWIN
using Row = float;
#else
using Row = long;
#endif

long program(const std::vector<Row>& rows, const std::vector<int>& columns, const std::vector<float>& values) {
  return sk::Csr<float>::from_triples(3, 3, rows, columns, values).rows();
}
