// expect: this layer takes an image, Shape<height, width, channels>: is a Flatten too early?
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/conv2d.hpp>
#include <skein/nn/graph.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>

namespace sk = skein;
namespace nn = skein::nn;
struct x;
struct a;
struct b;
struct y;

// clang-format off
struct Net : nn::Graph<nn::Input<x>,
#ifdef SKEIN_TWIN
    nn::Apply<nn::Linear<4>, nn::From<x>, nn::To<y>>,
#else
    nn::Apply<nn::Sequential<nn::Linear<4>, nn::Conv2d<3, sk::Kernel<1>>>, nn::From<x>, nn::To<y>>,
#endif
    nn::Output<y>> {};
// clang-format on

int main() { sk::Model<Net, sk::Shape<7>> model; }
