// expect: the first argument is a model, by its name: *model of a pointer to one, trainer.model() of a trainer
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/train/predictor.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;

using Model = sk::Model<sk::nn::Sequential<sk::nn::Linear<1>>, sk::Shape<1>>;

int main() {
  Model model{sk::Seed{1}};
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{.lr = 0.1f}};
#ifdef SKEIN_TWIN
  sk::Predictor predictor{trainer.model(), {.capacity = 8}};
#else
  sk::Predictor predictor{trainer, {.capacity = 8}};
#endif
}
