// expect: this layer is given an option twice, or two that exclude each other: leave one of them out
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/conv2d.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/relu.hpp>

namespace nn = skein::nn;

#ifdef SKEIN_TWIN
using Net = nn::Sequential<nn::Conv2d<4, skein::Kernel<3>>, nn::Relu>;
#else
using Net = nn::Sequential<nn::Conv2d<4, skein::Kernel<3>, skein::Kernel<5>>, nn::Relu>;
#endif

int main() { skein::Model<Net, skein::Shape<8, 8, 1>> model; }
