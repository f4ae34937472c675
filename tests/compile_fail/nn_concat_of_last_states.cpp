// expect: of recurrent layers all or none have LastState
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/concat.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/recurrent.hpp>
#include <skein/nn/sequential.hpp>

namespace nn = skein::nn;

#ifdef SKEIN_TWIN
using Both = nn::Concat<nn::Lstm<12, skein::LastState>, nn::Lstm<12, skein::LastState, skein::Reversed>>;
#else
using Both = nn::Concat<nn::Lstm<12, skein::LastState>, nn::Lstm<12, skein::Reversed>>;
#endif
using Rows = skein::Model<nn::Sequential<Both>, skein::Shape<28, 28>>;
static_assert(Rows::output_extents.last() == 24);
