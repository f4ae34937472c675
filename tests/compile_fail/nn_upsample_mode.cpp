// expect: Upsample<Factor, Mode>: the Mode is Nearest or Bilinear
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/model.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/nn/upsample.hpp>

namespace nn = skein::nn;

#ifdef SKEIN_TWIN
using Network = nn::Sequential<nn::Upsample<2, skein::Bilinear>>;
#else
using Network = nn::Sequential<nn::Upsample<2, int>>;
#endif
using Samples = skein::Model<Network, skein::Shape<5, 5, 1>>;
static_assert(Samples::output_extents.last() == 1);
