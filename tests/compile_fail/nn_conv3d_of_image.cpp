// expect: this layer takes a volume, Shape<depth, height, width, channels>
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/conv2d.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/reshape.hpp>
#include <skein/nn/sequential.hpp>

namespace nn = skein::nn;

#ifdef SKEIN_TWIN
using Network = nn::Sequential<nn::Reshape<4, 7, 28, 1>, nn::Conv3d<8, skein::Kernel<3>>>;
#else
using Network = nn::Sequential<nn::Conv3d<8, skein::Kernel<3>>>;
#endif
using Samples = skein::Model<Network, skein::Shape<28, 28, 1>>;
static_assert(Samples::output_extents.last() == 8);
