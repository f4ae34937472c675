// expect: the network ends with probabilities (Softmax or Sigmoid), and this loss takes logits
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/executor.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/nn/softmax.hpp>

namespace sk = skein;
namespace nn = skein::nn;

#ifdef SKEIN_TWIN
using Net = nn::Sequential<nn::Linear<3>>;
#else
using Net = nn::Sequential<nn::Linear<3>, nn::Softmax>;
#endif

int main() {
  sk::Model<Net, sk::Shape<4>> model;
  sk::Executor executor{model, nn::CrossEntropy{}, {.capacity = 64}};
}
