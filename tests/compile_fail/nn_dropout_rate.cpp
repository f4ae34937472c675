// expect: Dropout's Rate is a share: from 0 to 1
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/dropout.hpp>

#ifdef SKEIN_TWIN
using Drop = skein::nn::Dropout<skein::Rate<1, 5>>;
#else
using Drop = skein::nn::Dropout<skein::Rate<5, 1>>;
#endif

int main() { return Drop::describe({1, {5}}).saves_input ? 1 : 0; }
