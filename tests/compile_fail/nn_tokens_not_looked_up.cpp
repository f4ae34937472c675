// expect: the input is tokens and this layer calculates with numbers: let a layer look them up before, as an embedding does
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/flatten.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>

namespace sk = skein;
using namespace sk::literals;

struct Embedding {
  static constexpr sk::LayerSpec describe(sk::Edge in) {
    return {.output = {in.last(), 3}, .parameters = {{"table", {1000, 3}}}, .tokens = 1000};
  }
  static void forward(auto& f) { f.y() = rows_of(f.parameter("table"_p), f.tokens()); }
  static void backward(auto& f) { f.gradient("table"_p) += sum_by_token(f.dy(), f.tokens()); }
};

#ifdef SKEIN_TWIN
using Net = sk::nn::Sequential<Embedding>;
#else
using Net = sk::nn::Sequential<sk::nn::Linear<4>>;
#endif
int main() { sk::Model<Net, sk::Tokens<4>> model; }
