// expect: a Graph is made of Input<...>, Apply<Layer, From<...>, To<...>> and Output<...>
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/graph.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>

namespace sk = skein;
namespace nn = skein::nn;
struct x;
struct y;

#ifdef SKEIN_TWIN
struct Net : nn::Graph<nn::Input<x>, nn::Apply<nn::Linear<3>, nn::From<x>, nn::To<y>>, nn::Output<y>> {};
#else
struct Net : nn::Graph<nn::Input<x>, nn::Linear<3>, nn::Output<x>> {};
#endif

int main() { sk::Model<Net, sk::Shape<9>> model; }
