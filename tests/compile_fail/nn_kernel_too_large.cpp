// expect: the kernel is larger than its padded input: use a smaller kernel or more padding
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/conv2d.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>

namespace sk = skein;

// clang-format off
struct Net : sk::nn::Sequential<
#ifdef SKEIN_TWIN
    sk::nn::Conv2d<6, sk::Kernel<31>, sk::Padding<2>>
#else
    sk::nn::Conv2d<6, sk::Kernel<31>>
#endif
    > {};
// clang-format on

int main() { sk::Model<Net, sk::Shape<28, 28, 1>> model; }
