// expect: fit splits no data: auto [train, rest] = sk::data::split(set, 0.8), and .validate = rest
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <skein/data/from_tensors.hpp>
#include <skein/data/subset.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;

int main() {
  sk::Model<sk::nn::Sequential<sk::nn::Linear<1>>, sk::Shape<1>> model;
  const std::vector<float> x(8), y(8);
#ifdef SKEIN_TWIN
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{}};
  const auto [train, rest] = sk::data::split(sk::data::from_tensors(x, y), 0.8);
  trainer.fit(train, {.epochs = 5, .batch = 32, .validate = rest});
#else
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{}};
  trainer.fit(sk::data::from_tensors(x, y), {.epochs = 5, .batch = 32, .validation_split = 0.2});
#endif
}
