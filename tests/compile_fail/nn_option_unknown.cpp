// expect: this layer has no such option: it has those of the List beside this sentence
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/recurrent.hpp>

namespace nn = skein::nn;

#ifdef SKEIN_TWIN
using Net = nn::Sequential<nn::Lstm<8, skein::LastState>, nn::Linear<3>>;
#else
using Net = nn::Sequential<nn::Lstm<8, skein::LastState, skein::NoBias>, nn::Linear<3>>;
#endif

int main() { skein::Model<Net, skein::Shape<5, 4>> model; }
