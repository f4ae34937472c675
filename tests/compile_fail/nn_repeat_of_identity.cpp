// expect: Repeat: this block hands its input on as it is
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/identity.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/repeat.hpp>
#include <skein/nn/tanh.hpp>

namespace sk = skein;

// clang-format off
struct Net : sk::nn::Sequential<sk::nn::Linear<16>,
#ifdef SKEIN_TWIN
    sk::nn::Repeat<2, sk::nn::Sequential<sk::nn::Identity, sk::nn::Tanh>>,
#else
    sk::nn::Repeat<2, sk::nn::Sequential<sk::nn::Identity>>,
#endif
    sk::nn::Linear<1>> {};
// clang-format on

int main() { sk::Model<Net, sk::Shape<1>> model; }
