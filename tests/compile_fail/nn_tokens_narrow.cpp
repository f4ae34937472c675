// expect: there are more tokens than the type of the activations can tell apart: take float instead of a 16-bit precision
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/flatten.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/model.hpp>

namespace sk = skein;
using namespace sk::literals;

struct Embedding {
  static constexpr sk::LayerSpec describe(sk::Edge in) {
    return {.output = {in.last(), 3}, .parameters = {{"table", {1000, 3}}}, .backward_reads = sk::Reads::x, .tokens = 1000};
  }
  static void forward(auto& f) { f.y() = rows_of(f.parameter("table"_p), f.tokens()); }
  static void backward(auto& f) { f.gradient("table"_p) += sum_by_token(f.dy(), f.tokens()); }
};

#ifdef SKEIN_TWIN
using Precision = sk::precision::fp16;
#else
using Precision = sk::precision::bf16;
#endif
int main() { sk::Model<sk::nn::Sequential<Embedding>, sk::Tokens<4>, sk::Cpu, Precision> model; }
