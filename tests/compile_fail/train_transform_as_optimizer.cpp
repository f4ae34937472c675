// expect: this is a transform of gradients, which stands before an optimizer: optim::chain(Lars{...}, Sgd{.lr = 0.1f})
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/optim/transform/lars.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;

int main() {
  sk::Model<sk::nn::Sequential<sk::nn::Linear<1>>, sk::Shape<1>> model;
#ifdef SKEIN_TWIN
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::chain(sk::optim::Lars{}, sk::optim::Sgd{.lr = 0.1f})};
#else
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Lars{}};
#endif
}
