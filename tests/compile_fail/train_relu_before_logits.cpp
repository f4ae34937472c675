// expect: the network ends with Relu, so that no output is below 0, and this loss takes logits
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/dropout.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/binary_cross_entropy.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;
namespace nn = skein::nn;

int main() {
#ifdef SKEIN_TWIN
  sk::Model<nn::Sequential<nn::Linear<4>, nn::Relu, nn::Linear<1>, nn::Dropout<>>, sk::Shape<4>> model;
#else
  sk::Model<nn::Sequential<nn::Linear<4>, nn::Linear<1>, nn::Relu, nn::Dropout<>>, sk::Shape<4>> model;
#endif
  sk::Trainer trainer{model, nn::BinaryCrossEntropy{}, sk::optim::Sgd{}};
}
