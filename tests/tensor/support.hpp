// SPDX-License-Identifier: Apache-2.0
// What the tests of tensors share: plain loops as the naive twin, and the text of what is thrown.
#pragma once
#include <skein/tensor/create.hpp>
#include <skein/tensor/tensor.hpp>

#include <string>
#include <vector>

#include "../support/close.hpp"

namespace tensor_test {

namespace sk = skein;

/// A tensor of reproducible values in [low, high).
template <class S, int R>
sk::Tensor<S, R> values(const sk::Dims<R>& extents, std::uint64_t seed, double low = -2, double high = 2) {
  sk::Tensor<S, R> t(extents);
  std::uint64_t i = 0;
  for (S& x : t) x = static_cast<S>(low + (high - low) * static_cast<double>(sk::random_uniform(seed, 9, i++)));
  return t;
}

/// All values of an expression, in row-major order.
template <class E> auto list(const E& e) {
  auto t = sk::eval(e);
  return std::vector<typename E::Scalar>(t.begin(), t.end());
}

template <class Function> std::string text_of(Function&& f) {
  try {
    f();
  } catch (const std::exception& e) { return e.what(); }
  return "nothing was thrown";
}

}  // namespace tensor_test
