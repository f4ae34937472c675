// expect: the Padding of this transposed convolution leaves no output: use less padding or a larger kernel
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/conv_transpose2d.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/sequential.hpp>

namespace nn = skein::nn;

#ifdef SKEIN_TWIN
using Network = nn::Sequential<nn::ConvTranspose2d<8, skein::Kernel<3>, skein::Padding<1>>>;
#else
using Network = nn::Sequential<nn::ConvTranspose2d<8, skein::Kernel<3>, skein::Padding<4>>>;
#endif
using Samples = skein::Model<Network, skein::Shape<5, 5, 1>>;
static_assert(Samples::output_extents.last() == 8);
