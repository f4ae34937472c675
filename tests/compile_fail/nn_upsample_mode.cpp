// expect: this layer has no such option: it has those of the List beside this sentence
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/model.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/upsample.hpp>

namespace nn = skein::nn;

#ifdef SKEIN_TWIN
using Net = nn::Sequential<nn::Upsample<2, skein::Bilinear>, nn::Relu>;
#else
using Net = nn::Sequential<nn::Upsample<2, int>, nn::Relu>;
#endif

int main() { skein::Model<Net, skein::Shape<5, 5, 1>> model; }
