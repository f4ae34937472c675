// expect: Residual: body and shortcut give different shapes: give the shortcut the stride and the channels of the body
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/conv2d.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/residual.hpp>

namespace sk = skein;

// clang-format off
struct Net : sk::nn::Sequential<
#ifdef SKEIN_TWIN
    sk::nn::Conv2d<4, sk::Kernel<1>>,
    sk::nn::Residual<sk::nn::Conv2d<8, sk::Kernel<1>, sk::Stride<2>>, sk::nn::Conv2d<8, sk::Kernel<1>, sk::Stride<2>>>
#else
    sk::nn::Conv2d<4, sk::Kernel<1>>,
    sk::nn::Residual<sk::nn::Conv2d<8, sk::Kernel<1>, sk::Stride<2>>>
#endif
    > {};
// clang-format on

int main() { sk::Model<Net, sk::Shape<28, 28, 1>> model; }
