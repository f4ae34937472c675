// expect: the extents of the expression do not fit the array that it is assigned to: aligned at the last, each must be equal or 1
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/expression_layer.hpp>

#include <skein/nn/check.hpp>

namespace sk = skein;

struct Own {
#ifdef SKEIN_TWIN
  static constexpr sk::LayerSpec describe(sk::Edge in) { return {.output = in}; }
#else
  static constexpr sk::LayerSpec describe(sk::Edge in) { return {.output = {in[0] + 1}}; }
#endif
  static void forward(auto& f) { f.y() = 2 * f.x(); }
  static void backward(auto& f) { f.dx() = 2; }
};

int main() { sk::assert_layer<Own, sk::Shape<4>>(); }
