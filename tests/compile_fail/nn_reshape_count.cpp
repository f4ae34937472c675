// expect: Reshape<...>: the extents must multiply to as many values as the input has
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/reshape.hpp>

namespace sk = skein;

#ifdef SKEIN_TWIN
struct Net : sk::nn::Sequential<sk::nn::Reshape<4, 3>> {};
#else
struct Net : sk::nn::Sequential<sk::nn::Reshape<4, 4>> {};
#endif

int main() { sk::Model<Net, sk::Shape<12>> model; }
