// expect: this layer takes tokens: it stands first in a network whose input is Tokens<T>
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
struct Net : sk::nn::Sequential<Embedding, sk::nn::Flatten, sk::nn::Linear<4>> {};
#else
struct Net : sk::nn::Sequential<Embedding, sk::nn::Flatten, sk::nn::Linear<4>, Embedding> {};
#endif
int main() { sk::Model<Net, sk::Tokens<4>> model; }
