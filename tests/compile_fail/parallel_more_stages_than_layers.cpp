// expect: balanced_stages<Network, Input, N>: the network has fewer layers than stages are asked for
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/fused/linear_activation.hpp>
#include <skein/nn/relu.hpp>
#include <skein/parallel/pipeline/stages.hpp>

namespace sk = skein;
using Network = sk::nn::Sequential<sk::nn::Linear<8>, sk::nn::Relu, sk::nn::Linear<2>>;

#ifndef SKEIN_TWIN
constexpr int stages = 3;
#else
constexpr int stages = 2;
#endif

unsigned long size = sizeof(sk::parallel::balanced_stages<Network, sk::Shape<4>, stages>);
