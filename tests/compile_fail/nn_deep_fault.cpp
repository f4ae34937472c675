// expect: this layer takes a flat shape: put Flatten before it
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/conv2d.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/repeat.hpp>
#include <skein/nn/residual.hpp>

namespace sk = skein;

// clang-format off
struct Net : sk::nn::Sequential<
#ifdef SKEIN_TWIN
    sk::nn::Conv2d<4, sk::Kernel<1>>,
    sk::nn::Residual<
        sk::nn::Sequential<sk::nn::Conv2d<4, sk::Kernel<1>>, sk::nn::Repeat<2, sk::nn::Sequential<sk::nn::Conv2d<4, sk::Kernel<1>>>>>>
#else
    sk::nn::Conv2d<4, sk::Kernel<1>>,
    sk::nn::Residual<
        sk::nn::Sequential<sk::nn::Conv2d<4, sk::Kernel<1>>, sk::nn::Repeat<2, sk::nn::Sequential<sk::nn::Linear<4>>>>>
#endif
    > {};
// clang-format on

int main() { sk::Model<Net, sk::Shape<28, 28, 1>> model; }
