// SPDX-License-Identifier: Apache-2.0
// ctest expects: the same after the journey: true
// Tensors on a GPU: made there, computed with in one kernel an assignment, moved by .to(). What mixes devices does not compile.
#include <skein/cuda.hpp>
#include <skein/tensor/print.hpp>

#include <iostream>

namespace sk = skein;

int main() {
  const sk::Cuda gpu{0};                                                // by its ordinal
  sk::Tensor<float, 2, sk::Cuda> x = sk::ones<float>(gpu, 5, 3);        // (5, 3)
  const sk::Tensor<float, 2, sk::Cuda> scale = sk::eye<float>(3, gpu);  // (3, 3)
  const auto vector = sk::Tensor<float, 1>{1, 2, 3}.to(gpu);            // (3)

  // Products by cuBLASLt; numbers and vectors are broadcast; one kernel; values that depend on the seed only, on both devices
  // alike.
  x += 1;
  const sk::Tensor<float, 2, sk::Cuda> product = mm(x, scale) * vector;  // (5, 3)
  const sk::Tensor<float, 2, sk::Cuda> noise = sk::normal<float>(sk::Seed{42}, sk::dims(5, 3), 0.f, 1.f, 0, gpu);
  x = relu(product * noise + 0.5f);
  std::cout << "x:\n" << x << "\nsum " << sum(x) << ", of columns " << sum(x, 0) << ", largest at " << argmax(x) << "\n";

  const sk::Tensor<float, 2> host_noise = sk::normal<float>(sk::Seed{42}, sk::dims(5, 3));
  const auto back = noise.to<sk::Cpu>();
  std::cout << "the same after the journey: " << std::boolalpha << (max(abs(back - host_noise)) < 1e-5f) << "\n";
}
