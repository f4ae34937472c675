// expect: the policy stands where the optimizer belongs: write Trainer{model, loss, optimizer, policy}
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <skein/data/from_tensors.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;

int main() {
  sk::Model<sk::nn::Sequential<sk::nn::Linear<1>>, sk::Shape<1>> model;
  const std::vector<float> x(8), y(8);
#ifdef SKEIN_TWIN
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{}, sk::parallel::Alone{}};
#else
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::parallel::Alone{}, sk::optim::Sgd{}};
#endif
}
