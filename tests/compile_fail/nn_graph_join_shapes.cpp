// expect: Graph: this join refuses the shapes of its edges: Add and Multiply take equal ones
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
    nn::Apply<nn::Linear<4>, nn::From<x>, nn::To<b>>,
    nn::Apply<nn::Add, nn::From<a, b>, nn::To<y>>,
#else
    nn::Apply<nn::Linear<4>, nn::From<x>, nn::To<a>>,
    nn::Apply<nn::Linear<5>, nn::From<x>, nn::To<b>>,
    nn::Apply<nn::Add, nn::From<a, b>, nn::To<y>>,
#endif
    nn::Output<y>> {};
// clang-format on

int main() { sk::Model<Net, sk::Shape<7>> model; }
