// expect: the network ends with probabilities (Softmax or Sigmoid), and this loss takes logits
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/graph.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/nn/softmax.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;
namespace nn = skein::nn;
struct x;
struct hidden;
struct y;

#ifdef SKEIN_TWIN
struct Head : nn::Sequential<nn::Softmax, nn::Linear<3>> {};
#else
struct Head : nn::Sequential<nn::Linear<3>, nn::Softmax> {};
#endif
struct Net : nn::Graph<nn::Input<x>, nn::Apply<nn::Linear<8>, nn::From<x>, nn::To<hidden>>,
                       nn::Apply<Head, nn::From<hidden>, nn::To<y>>, nn::Output<y>> {};

int main() {
  sk::Model<Net, sk::Shape<4>> model;
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{}};
}
