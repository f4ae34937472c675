// expect: Epsilon<N, D> is added to a variance: N / D is above 0
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/rms_norm.hpp>

namespace nn = skein::nn;

#ifdef SKEIN_TWIN
using Net = nn::Sequential<nn::RmsNorm<skein::Epsilon<1, 100>>, nn::Linear<3>>;
#else
using Net = nn::Sequential<nn::RmsNorm<skein::Epsilon<0, 1>>, nn::Linear<3>>;
#endif

int main() { skein::Model<Net, skein::Shape<8>> model; }
