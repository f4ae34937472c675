// expect: Linear needs at least one output
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/linear.hpp>

#ifdef SKEIN_TWIN
constexpr int outputs = 1;
#else
constexpr int outputs = 0;
#endif

static_assert(skein::nn::Linear<outputs>::describe({1, {7}}).output.flat());
