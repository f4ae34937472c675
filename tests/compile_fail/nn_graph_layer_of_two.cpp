// expect: Graph: a layer reads one edge: join several before it, by Add, Multiply, Concatenate or a join of your own
// SPDX-License-Identifier: Apache-2.0
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
    nn::Apply<nn::Linear<4>, nn::From<x>, nn::To<a>>,
    nn::Apply<nn::Add, nn::From<a, a>, nn::To<y>>,
#else
    nn::Apply<nn::Linear<4>, nn::From<x>, nn::To<a>>,
    nn::Apply<nn::Linear<4>, nn::From<a, a>, nn::To<y>>,
#endif
    nn::Output<y>> {};
// clang-format on

int main() { sk::Model<Net, sk::Shape<7>> model; }
