// expect: Graph: this Output is the tokens of the input, which are no numbers: let a layer look them up before
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/graph.hpp>
#include <skein/nn/model.hpp>

namespace sk = skein;
namespace nn = skein::nn;
using namespace sk::literals;
struct words;
struct found;
struct again;
struct sum;

struct Embedding {
  static constexpr sk::LayerSpec describe(sk::Edge in) {
    return {.output = {in.last(), 3}, .parameters = {{"table", {1000, 3}}}, .tokens = 1000};
  }
  static void forward(auto& f) { f.y() = rows_of(f.parameter("table"_p), f.tokens()); }
  static void backward(auto& f) { f.gradient("table"_p) += sum_by_token(f.dy(), f.tokens()); }
};
#ifdef SKEIN_TWIN
using Second = again;
#else
using Second = words;
#endif
struct Net : nn::Graph<nn::Input<words>, nn::Apply<Embedding, nn::From<words>, nn::To<found>>,
                       nn::Apply<Embedding, nn::From<words>, nn::To<again>>,
                       nn::Apply<nn::Add, nn::From<found, again>, nn::To<sum>>, nn::Output<sum>, nn::Output<Second>> {};

int main() { sk::Model<Net, sk::Tokens<4>> model; }
