// expect: Recompute: a layer that carries its state from batch to batch has it where the block is made again: leave that layer out of the block
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/model.hpp>
#include <skein/nn/recompute.hpp>
#include <skein/nn/recurrent.hpp>
#include <skein/nn/sequential.hpp>

namespace sk = skein;
namespace nn = skein::nn;

#ifdef SKEIN_TWIN
using Rows = nn::Lstm<4>;
#else
using Rows = nn::Lstm<4, sk::Stateful>;
#endif
using Model = sk::Model<nn::Sequential<nn::Recompute<Rows>, nn::Gru<3, sk::LastState>>, sk::Shape<3, 2>>;
static_assert(Model::output_extents.last() == 3);
