// expect: this layer's input is tokens, as its describe() says, and no numbers: read f.tokens()
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
  static void forward(auto& f) {
#ifdef SKEIN_TWIN
    f.y() = rows_of(f.parameter("table"_p), f.tokens());
#else
    f.y() = f.x();
#endif
  }
  static void backward(auto& f) { f.gradient("table"_p) += sum_by_token(f.dy(), f.tokens()); }
};
int main() { sk::assert_layer<Embedding, sk::Tokens<3>>(); }
