// expect: the number of groups (Groups<G>, GroupNorm<G>) must divide the input channels, and the filters of a convolution
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/conv2d.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>

namespace sk = skein;

// clang-format off
struct Net : sk::nn::Sequential<
#ifdef SKEIN_TWIN
    sk::nn::Conv2d<8, sk::Kernel<1>>, sk::nn::Conv2d<8, sk::Kernel<1>, sk::Groups<4>>
#else
    sk::nn::Conv2d<6, sk::Kernel<1>>, sk::nn::Conv2d<8, sk::Kernel<1>, sk::Groups<4>>
#endif
    > {};
// clang-format on

int main() { sk::Model<Net, sk::Shape<28, 28, 1>> model; }
