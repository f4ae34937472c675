// expect: how a step is computed is an option of .compute: .compute = {.execution = Execution::layer_wise, .graph = false}
// SPDX-License-Identifier: Apache-2.0
#include <skein/data/from_tensors.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/tensor/create.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;

int main() {
  sk::Model<sk::nn::Sequential<sk::nn::Linear<1>>, sk::Shape<1>> model;
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{}};
  const auto data = sk::data::from_tensors(sk::zeros<float>(8, 1), sk::zeros<float>(8, 1));
#ifdef SKEIN_TWIN
  trainer.fit(data, {.epochs = 5, .batch = 8, .compute = {.execution = sk::Execution::layer_wise}});
#else
  trainer.fit(data, {.epochs = 5, .batch = 8, .execution = sk::Execution::layer_wise});
#endif
}
