// expect: this layer takes an image, Shape<height, width, channels>: is a Flatten too early?
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/conv2d.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>

namespace sk = skein;

// clang-format off
struct Net : sk::nn::Sequential<
#ifdef SKEIN_TWIN
    sk::nn::Conv2d<6, sk::Kernel<5>>, sk::nn::Flatten
#else
    sk::nn::Flatten, sk::nn::Conv2d<6, sk::Kernel<5>>
#endif
    > {};
// clang-format on

int main() { sk::Model<Net, sk::Shape<28, 28, 1>> model; }
