// expect: the network ends with probabilities (Softmax or Sigmoid), and this loss takes logits
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/dropout.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/nn/softmax.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;
namespace nn = skein::nn;

struct Head : nn::Sequential<nn::Linear<3>, nn::Softmax, nn::Dropout<>> {};

int main() {
#ifdef SKEIN_TWIN
  sk::Model<nn::Sequential<Head, nn::Linear<3>>, sk::Shape<4>> model;
#else
  sk::Model<nn::Sequential<nn::Linear<4>, Head>, sk::Shape<4>> model;
#endif
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{}};
}
