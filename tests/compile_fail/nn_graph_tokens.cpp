// expect: Graph: Inputs with shapes are parts of one row of floats, and this one is Tokens<T>: tokens cannot stand beside numbers yet
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/graph.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>

namespace sk = skein;
namespace nn = skein::nn;
struct words;
struct numbers;
struct y;

#ifdef SKEIN_TWIN
using Words = sk::Shape<3>;
#else
using Words = sk::Tokens<3>;
#endif
struct Net : nn::Graph<nn::Input<words, Words>, nn::Input<numbers, sk::Shape<4>>,
                       nn::Apply<nn::Concatenate, nn::From<words, numbers>, nn::To<y>>, nn::Output<y>> {};

int main() { sk::Model<Net, Net::input> model; }
