// expect: data::from_tensors takes ranges of numbers or of std::array of numbers, such as std::vector<float>, and tensors on the host
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <skein/data/from_tensors.hpp>
#include <skein/tensor/tensor.hpp>

int main() {
  const skein::Tensor<float, 2> x{{1, 2}, {3, 4}};
#ifdef SKEIN_TWIN
  const skein::Tensor<float, 2> twice = 2.0f * x;
  skein::data::from_tensors(twice, std::vector<int>{0, 1});
#else
  skein::data::from_tensors(2.0f * x, std::vector<int>{0, 1});
#endif
}
