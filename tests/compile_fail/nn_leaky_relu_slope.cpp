// expect: LeakyRelu's Slope<N, D> is 0 or more
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/leaky_relu.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>

namespace nn = skein::nn;

#ifdef SKEIN_TWIN
using Net = nn::Sequential<nn::Linear<3>, nn::LeakyRelu<skein::Slope<1, 5>>>;
#else
using Net = nn::Sequential<nn::Linear<3>, nn::LeakyRelu<skein::Slope<-1, 5>>>;
#endif

int main() { skein::Model<Net, skein::Shape<8>> model; }
