// expect: LeakyRelu's Slope must not be negative
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/leaky_relu.hpp>

#ifdef SKEIN_TWIN
using Activation = skein::nn::LeakyRelu<skein::Slope<1, 5>>;
#else
using Activation = skein::nn::LeakyRelu<skein::Slope<-1, 5>>;
#endif

const auto size = sizeof(Activation);
