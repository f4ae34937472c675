// expect: Repeat<N, Block>: N must be at least 1
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
    sk::nn::Flatten, sk::nn::Repeat<1, sk::nn::Linear<784>>
#else
    sk::nn::Flatten, sk::nn::Repeat<0, sk::nn::Linear<784>>
#endif
    > {};
// clang-format on

int main() { sk::Model<Net, sk::Shape<28, 28, 1>> model; }
