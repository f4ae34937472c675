// expect: Rnn, Lstm and Gru run on the host so far: take a model on sk::Cpu
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/fused_network.hpp>
#include <skein/nn/recurrent.hpp>

namespace sk = skein;
namespace nn = skein::nn;

#ifdef SKEIN_TWIN
using Device = sk::Cpu;
#else
using Device = sk::Cuda;
#endif
using Executed = nn::Fused<nn::Lstm<8, sk::LastState>, Device>;
static_assert(nn::analyze<Executed>({2, {28, 28}}).output.last() == 8);
