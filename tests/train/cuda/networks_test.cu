// SPDX-License-Identifier: Apache-2.0
// Whole networks on a GPU beside the Cpu: convolutions, pooling, batch normalisation, residual blocks.
#include <catch2/catch.hpp>

#include "train/cuda/step_twins.hpp"

namespace sk = skein;
namespace nn = skein::nn;
namespace optim = skein::optim;

namespace networks {
struct LeNet : nn::Sequential<nn::Conv2d<6, sk::Kernel<5>, sk::Padding<2>>, nn::Relu, nn::MaxPool2d<2>,
                              nn::Conv2d<16, sk::Kernel<5>>, nn::Relu, nn::MaxPool2d<2>, nn::Flatten, nn::Linear<120>, nn::Relu,
                              nn::Linear<84>, nn::Relu, nn::Linear<10>> {};

template <int Channels, int Stride = 1> using Conv =
    nn::Conv2d<Channels, sk::Kernel<3>, sk::Padding<1>, sk::Stride<Stride>, sk::NoBias>;
template <int Channels> struct Block
    : nn::Residual<nn::Sequential<Conv<Channels>, nn::BatchNorm<>, nn::Relu, Conv<Channels>, nn::BatchNorm<>>> {};
struct ResNet : nn::Sequential<Conv<8>, nn::BatchNorm<>, nn::Relu, nn::Repeat<2, nn::Sequential<Block<8>, nn::Relu>>, Conv<12, 2>,
                               nn::BatchNorm<>, nn::Relu, nn::Dropout<sk::Rate<1, 10>>, nn::GlobalAvgPool, nn::Linear<10>> {};
}  // namespace networks

TEST_CASE("LeNet learns on a GPU what it learns on the Cpu", "[train][cuda]") {
  twins::agree<networks::LeNet, sk::Shape<28, 28, 1>, double>(nn::CrossEntropy{}, optim::Sgd{.lr = 0.02f, .momentum = 0.9},
                                                              {.batch = 4, .last = 3, .evaluates = true}, 1e-9);
}
TEST_CASE("a residual network with batch normalisation learns on a GPU what it learns on the Cpu", "[train][cuda]") {
  twins::agree<networks::ResNet, sk::Shape<8, 8, 3>, double>(nn::CrossEntropy{},
                                                             optim::Sgd{.lr = 0.05f, .momentum = 0.9, .weight_decay = 1e-4f},
                                                             {.batch = 5, .last = 3, .clip = 5, .evaluates = true}, 1e-8);
}
