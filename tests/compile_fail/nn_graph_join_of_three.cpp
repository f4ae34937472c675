// expect: Graph: this join, such as Multiply, is of two edges: join two of them, and what comes out with the next
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/graph.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>

namespace sk = skein;
namespace nn = skein::nn;
using nn::Apply, nn::From, nn::To;
struct in;
struct first;
struct second;
struct product;

#ifdef SKEIN_TWIN
using Read = From<first, second>;
#else
using Read = From<first, second, in>;
#endif
struct Net : nn::Graph<nn::Input<in>, Apply<nn::Linear<4>, From<in>, To<first>>, Apply<nn::Linear<4>, From<in>, To<second>>,
                       Apply<nn::Multiply, Read, To<product>>, nn::Output<product>> {};

int main() { sk::Model<Net, sk::Shape<4>> model; }
