// expect: BatchNorm's Momentum is the weight of the new statistics: from 0 to 1
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/batch_norm.hpp>

#ifdef SKEIN_TWIN
using Norm = skein::nn::BatchNorm<skein::Momentum<1, 10>>;
#else
using Norm = skein::nn::BatchNorm<skein::Momentum<9, 1>>;
#endif

int main() { return Norm::describe({1, {5}}).couples_batch ? 0 : 1; }
