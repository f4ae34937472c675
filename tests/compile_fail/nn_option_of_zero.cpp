// expect: Kernel<K>, Stride<S>, Dilation<D> and Groups<G> are at least 1
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/conv2d.hpp>
#include <skein/nn/max_pool2d.hpp>
#include <skein/nn/model.hpp>

namespace nn = skein::nn;

#ifdef SKEIN_TWIN
using Net = nn::Sequential<nn::Conv2d<4, skein::Kernel<3>>, nn::MaxPool2d<2, skein::Stride<1>>>;
#else
using Net = nn::Sequential<nn::Conv2d<4, skein::Kernel<3>>, nn::MaxPool2d<2, skein::Stride<0>>>;
#endif

int main() { skein::Model<Net, skein::Shape<8, 8, 1>> model; }
