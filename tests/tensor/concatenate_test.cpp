// SPDX-License-Identifier: Apache-2.0
#include <skein/tensor/concatenate.hpp>

#include <catch2/catch.hpp>
#include "support.hpp"

using namespace tensor_test;

TEST_CASE("concatenate and slice are inverse; stack makes a new axis") {
  const auto a = values<float>(sk::dims(2, 3, 4), 1);
  const auto b = values<float>(sk::dims(2, 1, 4), 2);
  const auto c = concatenate(1, a, b * 2, a);
  CHECK(c.shape() == sk::dims(2, 7, 4));
  CHECK(list(c(sk::all, sk::range(0, 3))) == list(a));
  CHECK(list(c(sk::all, sk::range(3, 4))) == list(b * 2));
  CHECK(list(c(sk::all, sk::range(-3))) == list(a));
  const sk::Tensor<int, 1> u{1, 2}, v{3, 4};
  CHECK(list(stack(0, u, v)) == std::vector<int>{1, 2, 3, 4});
  CHECK(list(stack(-1, u, v)) == std::vector<int>{1, 3, 2, 4});
  CHECK(stack(1, u, v, u).shape() == sk::dims(2, 3));
}

TEST_CASE("what does not join says why") {
  const auto a = values<float>(sk::dims(2, 3), 1);
  const auto b = values<float>(sk::dims(3, 3), 2);
  CHECK(text_of([&] { concatenate(1, a, b); }) ==
        "concatenate: shapes (2, 3) and (3, 3) differ off the axis along which they are joined");
  CHECK(text_of([&] { stack(0, a, b); }) == "stack: shapes (2, 3) and (3, 3) differ: stacked tensors have one shape");
  CHECK(text_of([&] { concatenate(2, a, a); }).find("concatenate: axis 2 of a tensor of rank 2") == 0);
}
