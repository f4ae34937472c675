// expect: Dropout's Rate<N, D> is a share: N / D is from 0 to 1
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/dropout.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>

namespace nn = skein::nn;

#ifdef SKEIN_TWIN
using Net = nn::Sequential<nn::Dropout<skein::Rate<1, 5>>, nn::Linear<3>>;
#else
using Net = nn::Sequential<nn::Dropout<skein::Rate<1, 0>>, nn::Linear<3>>;
#endif

int main() { skein::Model<Net, skein::Shape<8>> model; }
