// expect: this layer takes a flat shape: put Flatten before it; behind a recurrent layer give that one LastState
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/recurrent.hpp>
#include <skein/nn/sequential.hpp>

namespace nn = skein::nn;

#ifdef SKEIN_TWIN
using Network = nn::Sequential<nn::Lstm<12, skein::LastState>, nn::Linear<3>>;
#else
using Network = nn::Sequential<nn::Lstm<12>, nn::Linear<3>>;
#endif
using Rows = skein::Model<Network, skein::Shape<28, 28>>;
static_assert(Rows::output_extents.last() == 3);
