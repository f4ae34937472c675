// expect: Concat: the branches give different shapes: all extents but the last must be equal
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/conv2d.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/concat.hpp>

namespace sk = skein;

// clang-format off
struct Net : sk::nn::Sequential<
#ifdef SKEIN_TWIN
    sk::nn::Concat<sk::nn::Conv2d<4, sk::Kernel<1>>, sk::nn::Conv2d<8, sk::Kernel<3>, sk::Padding<1>>>
#else
    sk::nn::Concat<sk::nn::Conv2d<4, sk::Kernel<1>>, sk::nn::Conv2d<8, sk::Kernel<3>>>
#endif
    > {};
// clang-format on

int main() { sk::Model<Net, sk::Shape<28, 28, 1>> model; }
