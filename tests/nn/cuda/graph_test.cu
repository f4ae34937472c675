// SPDX-License-Identifier: Apache-2.0
// Networks that are no chain on the GPU beside the Cpu, step by step, launched and replayed: sums, joins, gates, parts of the
// input and of the output.
#include "train/cuda/step_twins.hpp"

#include <skein/nn/graph.hpp>

namespace sk = skein;
namespace nn = skein::nn;
namespace optim = skein::optim;

namespace graph_cuda_test {
struct a;
struct b;
struct c;
struct d;
struct e;
struct f;
struct g;
struct x;
struct y;
using nn::Apply, nn::From, nn::To;

using Diamond =
    nn::Graph<nn::Input<x>, Apply<nn::Linear<6>, From<x>, To<a>>,
              Apply<nn::Sequential<nn::Linear<9>, nn::Relu, nn::Dropout<sk::Rate<1, 5>>, nn::Linear<6>>, From<a>, To<b>>,
              Apply<nn::Tanh, From<a>, To<c>>, Apply<nn::Multiply, From<b, c>, To<d>>, Apply<nn::Add, From<d, a, c>, To<e>>,
              Apply<nn::Linear<4>, From<e>, To<y>>, nn::Output<y>>;
using Parts = nn::Graph<nn::Input<a, sk::Shape<5, 4, 1>>, nn::Input<b, sk::Shape<3>>, Apply<nn::LayerNorm<>, From<a>, To<c>>,
                        Apply<nn::Sequential<nn::Flatten, nn::Linear<5>>, From<c>, To<d>>, Apply<nn::Linear<4>, From<b>, To<e>>,
                        Apply<nn::Concatenate, From<d, e>, To<f>>, Apply<nn::Linear<3>, From<f>, To<x>>,
                        Apply<nn::Linear<2>, From<x>, To<y>>, nn::Output<y>, nn::Output<x>>;
}  // namespace graph_cuda_test
using namespace graph_cuda_test;

TEST_CASE("A graph on a GPU trains as on the Cpu", "[nn][cuda]") {
  twins::agree<Diamond, sk::Shape<9>, double>(nn::CrossEntropy{}, optim::Adam{.lr = 0.01f});
  twins::agree<nn::Sequential<nn::Linear<7>, Diamond>, sk::Shape<9>>(nn::Mse{}, optim::Sgd{.lr = 0.1f, .momentum = 0.9});
}
TEST_CASE("A graph of two inputs and two outputs on a GPU trains as on the Cpu", "[nn][cuda]") {
  twins::agree<Parts, Parts::input, double>(nn::Mse{}, optim::Sgd{.lr = 0.05f});
}
