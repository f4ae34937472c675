// expect: this layer takes a sequence, Shape<steps, values>: a Reshape<steps, values> before it makes one
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/conv2d.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/reshape.hpp>
#include <skein/nn/sequential.hpp>

namespace nn = skein::nn;

#ifdef SKEIN_TWIN
using Network = nn::Sequential<nn::Reshape<28, 28>, nn::Conv1d<8, skein::Kernel<3>>>;
#else
using Network = nn::Sequential<nn::Conv1d<8, skein::Kernel<3>>>;
#endif
using Samples = skein::Model<Network, skein::Shape<28, 28, 1>>;
static_assert(Samples::output_extents.last() == 8);
