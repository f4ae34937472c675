// expect: the network ends with logits (Linear or a convolution), and this loss takes log-probabilities
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/identity.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/log_softmax.hpp>
#include <skein/nn/loss/nll.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;
namespace nn = skein::nn;

#ifdef SKEIN_TWIN
using Last = nn::LogSoftmax;
#else
using Last = nn::Identity;
#endif

int main() {
  sk::Model<nn::Sequential<nn::Linear<3>, Last>, sk::Shape<4>> model;
  sk::Trainer trainer{model, nn::Nll{}, sk::optim::Sgd{}};
}
