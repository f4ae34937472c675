// expect: the optimizer stands where the loss belongs: write Trainer{model, loss, optimizer, policy}
// SPDX-License-Identifier: Apache-2.0
#include <skein/data/from_tensors.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;

int main() {
  sk::Model<sk::nn::Sequential<sk::nn::Linear<1>>, sk::Shape<1>> model;
#ifdef SKEIN_TWIN
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{}};
#else
  sk::Trainer trainer{model, sk::optim::Sgd{}, sk::nn::Mse{}};
#endif
}
