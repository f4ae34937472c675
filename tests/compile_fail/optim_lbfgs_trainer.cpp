// expect: a loop by hand calls optim::BoundLbfgs{optim::Lbfgs{...}, model}.step(model, closure)
// SPDX-License-Identifier: Apache-2.0
#include <skein/data/from_tensors.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/lbfgs/lbfgs.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;

int main() {
  sk::Model<sk::nn::Sequential<sk::nn::Linear<1>>, sk::Shape<1>> model;
#ifdef SKEIN_TWIN
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{.lr = 0.1f}};
#else
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Lbfgs{}};
#endif
}
