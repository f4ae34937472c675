// expect: the model must outlive its trainer: give it a name
// SPDX-License-Identifier: Apache-2.0
#include <skein/data/from_tensors.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;

using Model = sk::Model<sk::nn::Sequential<sk::nn::Linear<1>>, sk::Shape<1>>;

int main() {
#ifdef SKEIN_TWIN
  Model model{sk::Seed{1}};
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{}};
#else
  sk::Trainer trainer{Model{sk::Seed{1}}, sk::nn::Mse{}, sk::optim::Sgd{}};
#endif
}
