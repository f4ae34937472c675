// expect after the compiler's own: a layer without options is written BatchNorm<>
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/batch_norm.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>

namespace nn = skein::nn;

#ifdef SKEIN_TWIN
struct Net : nn::Sequential<nn::Linear<8>, nn::BatchNorm<>, nn::Linear<3>> {};
#else
struct Net : nn::Sequential<nn::Linear<8>, nn::BatchNorm, nn::Linear<3>> {};
#endif

int main() { skein::Model<Net, skein::Shape<4>> model; }
