// SPDX-License-Identifier: Apache-2.0
// ctest expects: the same after the journey: true
// Tensors: made of lists, computed with in one fused pass an assignment, moved between devices.
#include <skein/skein.hpp>
#include <skein/tensor/print.hpp>

#include <array>
#include <iostream>

namespace sk = skein;

int main() {
  // A 5 x 3 tensor of ones out of an array; a diagonal matrix out of a list.
  const std::array<std::array<float, 3>, 5> array{{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}}};
  sk::Tensor<float, 2> ones(array);              // (5, 3)
  const auto scale = sk::diag({1.f, 2.f, 3.f});  // (3, 3)
  std::cout << "ones:\n" << ones << "\ndiagonal:\n" << scale << "\n";

  // A matrix times a matrix made of a list, and times a vector.
  const auto column = sk::Tensor<float, 1>{1, 2, 3}.reshape(3, 1);  // (3, 1)
  const sk::Tensor<float, 1> vector{1, 2, 3};
  std::cout << "mm: " << mm(scale, column).transpose() << ", mv: " << mv(ones, vector) << "\n";

  // Adding a number; a matrix times a vector value by value, each row alike (broadcasting).
  ones += 1;
  const sk::Tensor<float, 2> product = ones * vector;  // (5, 3)
  std::cout << "broadcast:\n" << product << "\n";

  // One fused loop; reductions, slices, and random values that depend on the seed only.
  const sk::Tensor noise = sk::normal<float>(sk::Seed{42}, sk::dims(5, 3));
  ones = relu(product * noise + 0.5f);
  std::cout << "sum " << sum(ones) << ", of columns " << sum(ones, 0) << ", second row " << ones(1) << ", largest at "
            << argmax(ones) << "\n";

  // To a device by its ordinal, and back: sk::Cuda{0} with skein/cuda.hpp, here the host itself.
  const auto there = ones.to(sk::Cpu{});
  std::cout << "the same after the journey: " << std::boolalpha << (max(abs(there.to<sk::Cpu>() - ones)) == 0) << "\n";
}
