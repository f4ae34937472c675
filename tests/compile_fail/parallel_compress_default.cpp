// expect: Compress makes a compressor for each bucket: it needs a default constructor (numbers as template arguments, as in TopK<100>), or by_matrix with for_matrix(seed, rows)
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>

#include <skein/comm/self/self_comm.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/data/compress.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;

struct AsTheyAre {
  static constexpr std::string_view name = "as they are";
  static constexpr bool linear = true;
  static constexpr int rounds = 1;
  using Element = float;
#ifndef SKEIN_TWIN
  explicit AsTheyAre(int) {}
#endif
  std::size_t elements(std::size_t n, int) const { return n; }
  void encode(std::span<const float> values, std::span<float> wire, int) {
    std::copy(values.begin(), values.end(), wire.begin());
  }
  void decode(std::span<const float> wire, std::span<float> values) { std::copy(wire.begin(), wire.end(), values.begin()); }
};

int main() {
  sk::SelfComm world;
  sk::Model<sk::nn::Sequential<sk::nn::Linear<1>>, sk::Shape<1>> model;
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{},
                      sk::parallel::DataParallel{world, sk::parallel::Compress<AsTheyAre>{}}};
}
