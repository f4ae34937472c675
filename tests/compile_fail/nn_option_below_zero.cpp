// expect: Padding<P>, OutputPadding<P> and ZeroChannels<Before, After> are at least 0
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/conv_transpose2d.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/relu.hpp>

namespace nn = skein::nn;

#ifdef SKEIN_TWIN
using Net = nn::Sequential<nn::ConvTranspose2d<4, skein::Kernel<3>, skein::Padding<1>>, nn::Relu>;
#else
using Net = nn::Sequential<nn::ConvTranspose2d<4, skein::Kernel<3>, skein::Padding<-1>>, nn::Relu>;
#endif

int main() { skein::Model<Net, skein::Shape<8, 8, 1>> model; }
