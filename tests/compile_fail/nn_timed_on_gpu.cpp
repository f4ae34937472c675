// expect: Timed is for the host: a GPU's work ends later than it is launched, and its profiler has the times
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/loss/timed.hpp>

namespace sk = skein;

#ifdef SKEIN_TWIN
using Device = sk::Cpu;
#else
using Device = sk::Cuda;
#endif
static_assert((sk::nn::assert_timed<sk::nn::Timed<sk::nn::Mse>, Device>(), true));
