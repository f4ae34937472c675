// expect: forward has no gradients: dy() is backward's
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/expression_layer.hpp>

#include <skein/nn/check.hpp>

namespace sk = skein;

struct Own {
  static constexpr sk::LayerSpec describe(sk::Edge in) { return {.output = in}; }
#ifdef SKEIN_TWIN
  static void forward(auto& f) { f.y() = 2 * f.x(); }
#else
  static void forward(auto& f) { f.y() = 2 * f.dy(); }
#endif
  static void backward(auto& f) { f.dx() = 2 * f.dy(); }
};

int main() { sk::assert_layer<Own, sk::Shape<4>>(); }
