// expect: BatchNorm's Momentum<N, D> is the weight of the new statistics: N / D is from 0 to 1
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/batch_norm.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>

namespace nn = skein::nn;

#ifdef SKEIN_TWIN
using Net = nn::Sequential<nn::BatchNorm<skein::Momentum<1, 10>>, nn::Linear<3>>;
#else
using Net = nn::Sequential<nn::BatchNorm<skein::Momentum<9, 1>>, nn::Linear<3>>;
#endif

int main() { skein::Model<Net, skein::Shape<8>> model; }
