// expect: the first argument is a model, by its name: *model of a pointer to one, trainer.model() of a trainer
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/executor.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/sequential.hpp>

namespace sk = skein;

using Model = sk::Model<sk::nn::Sequential<sk::nn::Linear<1>>, sk::Shape<1>>;

int main() {
  Model model{sk::Seed{1}};
#ifdef SKEIN_TWIN
  sk::Executor executor{model, sk::nn::Mse{}, {.capacity = 8}};
#else
  sk::Executor executor{&model, sk::nn::Mse{}, {.capacity = 8}};
#endif
}
