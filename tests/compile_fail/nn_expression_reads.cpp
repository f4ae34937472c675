// expect: this layer's backward reads x, and its describe() does not say so: .backward_reads = sk::Reads::x
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/expression_layer.hpp>

#include <skein/nn/check.hpp>

namespace sk = skein;

struct Own {
#ifdef SKEIN_TWIN
  static constexpr sk::LayerSpec describe(sk::Edge in) { return {.output = in, .backward_reads = sk::Reads::x}; }
#else
  static constexpr sk::LayerSpec describe(sk::Edge in) { return {.output = in}; }
#endif
  static void forward(auto& f) { f.y() = f.x() * f.x(); }
  static void backward(auto& f) { f.dx() = 2 * f.x() * f.dy(); }
};

int main() { sk::assert_layer<Own, sk::Shape<4>>(); }
