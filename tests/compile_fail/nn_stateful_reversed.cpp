// expect: Stateful: a sequence that is read from its end does not go on in the next batch: leave Reversed or Stateful out
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/model.hpp>
#include <skein/nn/recurrent.hpp>
#include <skein/nn/sequential.hpp>

namespace sk = skein;

#ifdef SKEIN_TWIN
using Layer = sk::nn::Gru<4, sk::Stateful>;
#else
using Layer = sk::nn::Gru<4, sk::Stateful, sk::Reversed>;
#endif
static_assert(sk::Model<sk::nn::Sequential<Layer>, sk::Shape<3, 2>>::output_extents.last() == 4);
