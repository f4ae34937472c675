// expect: with_input: for that input the network has other parameters, so that it cannot use these weights
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/flatten.hpp>
#include <skein/nn/global_avg_pool.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>

namespace sk = skein;

#ifdef SKEIN_TWIN
using Net = sk::nn::Sequential<sk::nn::GlobalAvgPool, sk::nn::Linear<2>>;
#else
using Net = sk::nn::Sequential<sk::nn::Flatten, sk::nn::Linear<2>>;
#endif

int main() {
  sk::Model<Net, sk::Shape<4, 4, 3>> model;
  (void)model.with_input<sk::Shape<8, 8, 3>>();
}
