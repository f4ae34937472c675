// expect: the number of groups (Groups<G>, GroupNorm<G>) must divide the input channels, and the filters of a convolution
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/conv2d.hpp>
#include <skein/nn/group_norm.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/sequential.hpp>

namespace nn = skein::nn;

#ifdef SKEIN_TWIN
using Network = nn::Sequential<nn::Conv2d<12, skein::Kernel<1>>, nn::GroupNorm<4>>;
#else
using Network = nn::Sequential<nn::Conv2d<6, skein::Kernel<1>>, nn::GroupNorm<4>>;
#endif
using Images = skein::Model<Network, skein::Shape<8, 8, 1>>;
static_assert(Images::output_extents.height() == 8);
