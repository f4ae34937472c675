// expect: a layer is no option of another one, which would not run it: write it behind that layer
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/conv2d.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/relu.hpp>

namespace nn = skein::nn;

#ifdef SKEIN_TWIN
using Net = nn::Sequential<nn::Conv2d<4, skein::Kernel<3>>, nn::Relu, nn::Flatten, nn::Linear<3>>;
#else
using Net = nn::Sequential<nn::Conv2d<4, skein::Kernel<3>, nn::Relu>, nn::Flatten, nn::Linear<3>>;
#endif

int main() { skein::Model<Net, skein::Shape<8, 8, 1>> model; }
