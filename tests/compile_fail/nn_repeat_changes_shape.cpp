// expect: Repeat: the block must return the shape that it gets
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/conv2d.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/repeat.hpp>

namespace sk = skein;

// clang-format off
struct Net : sk::nn::Sequential<
#ifdef SKEIN_TWIN
    sk::nn::Flatten, sk::nn::Linear<100>, sk::nn::Repeat<3, sk::nn::Linear<100>>
#else
    sk::nn::Flatten, sk::nn::Repeat<3, sk::nn::Linear<100>>
#endif
    > {};
// clang-format on

int main() { sk::Model<Net, sk::Shape<28, 28, 1>> model; }
