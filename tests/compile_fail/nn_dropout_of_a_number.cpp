// expect after the compiler's own: an option has its name, as in Conv2d<16, Kernel<3>> and Dropout<Rate<1, 10>>
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/dropout.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>

namespace nn = skein::nn;

#ifdef SKEIN_TWIN
struct Net : nn::Sequential<nn::Linear<8>, nn::Dropout<skein::Rate<1, 10>>, nn::Linear<3>> {};
#else
struct Net : nn::Sequential<nn::Linear<8>, nn::Dropout<0.1>, nn::Linear<3>> {};
#endif

int main() { skein::Model<Net, skein::Shape<4>> model; }
