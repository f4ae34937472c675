// expect: Graph: Inputs with shapes are parts of one row of floats, and this one is Tokens<T>: tokens cannot stand beside numbers yet
// SPDX-License-Identifier: Apache-2.0
#include <skein/data/from_tensors.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/graph.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/tensor/create.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;
namespace nn = skein::nn;
using namespace sk::literals;
using nn::Apply, nn::From, nn::To;
struct words;
struct numbers;
struct seen;
struct both;
struct y;

struct Embedding {
  static constexpr sk::LayerSpec describe(sk::Edge in) {
    return {.output = {in.last(), 3}, .parameters = {{"table", {1000, 3}}}, .tokens = 1000};
  }
  static void forward(auto& f) { f.y() = rows_of(f.parameter("table"_p), f.tokens()); }
  static void backward(auto& f) { f.gradient("table"_p) += sum_by_token(f.dy(), f.tokens()); }
};
#ifdef SKEIN_TWIN
using Words = nn::Input<words, sk::Shape<3>>;
using Lookup = nn::Linear<9>;
#else
using Words = nn::Input<words, sk::Tokens<3>>;
using Lookup = nn::Sequential<Embedding, nn::Flatten>;
#endif
struct Net
    : nn::Graph<Words, nn::Input<numbers, sk::Shape<4>>, Apply<Lookup, From<words>, To<seen>>,
                Apply<nn::Concatenate, From<seen, numbers>, To<both>>, Apply<nn::Linear<1>, From<both>, To<y>>, nn::Output<y>> {};

int main() {
  sk::Model<Net, Net::input> model;
  sk::Trainer trainer{model, nn::Mse{}, sk::optim::Sgd{}};
  trainer.fit(sk::data::from_tensors(sk::zeros<float>(8, 7), sk::zeros<float>(8, 1)), {.epochs = 5, .batch = 4});
  trainer.save("model");
}
