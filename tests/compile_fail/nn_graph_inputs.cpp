// expect: Graph: the shapes of its Inputs do not add up to the input that it gets: give the model Net::input
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/graph.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>

namespace sk = skein;
namespace nn = skein::nn;
struct a;
struct b;
struct y;

struct Net : nn::Graph<nn::Input<a, sk::Shape<3>>, nn::Input<b, sk::Shape<4>>,
                       nn::Apply<nn::Concatenate, nn::From<a, b>, nn::To<y>>, nn::Output<y>> {};

#ifdef SKEIN_TWIN
int main() { sk::Model<Net, Net::input> model; }
#else
int main() { sk::Model<Net, sk::Shape<9>> model; }
#endif
