// SPDX-License-Identifier: Apache-2.0
// Matrices for the tests of sparse products, and how near their results must be: the same on every device.
#pragma once
#include <cstdint>

#include "tensor/support.hpp"

namespace tensor_test {

/// A dense matrix of which `share` is not zero; row 2 is empty.
template <class S> sk::Tensor<S, 2> thinned(long rows, long columns, double share, std::uint64_t seed) {
  auto m = values<S>(sk::dims(rows, columns), seed);
  for (long i = 0; i < rows; ++i)
    for (long j = 0; j < columns; ++j)
      if (i == 2 || sk::random_uniform(seed, 77, static_cast<std::uint64_t>(i * columns + j)) >= static_cast<float>(share))
        m(i, j) = 0;
  return m;
}
template <class S, int R> bool near(const sk::Tensor<S, R>& a, const sk::Tensor<S, R>& b, double magnitude) {
  bool all = a.shape() == b.shape();
  for (long i = 0; all && i < a.size(); ++i) all = support::close(a.data()[i], b.data()[i], support::Roundings::sum, magnitude);
  return all;
}

}  // namespace tensor_test
