// expect: this layer lacks: static void backward(auto& f)
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/model.hpp>

namespace sk = skein;

struct Own {
  static constexpr sk::LayerSpec describe(sk::Edge in) { return {.output = in}; }
  static void forward(auto& f) { f.y() = 2 * f.x(); }
#ifdef SKEIN_TWIN
  static void backward(auto& f) { f.dx() = 2 * f.dy(); }
#endif
};

int main() { sk::Model<sk::nn::Sequential<Own>, sk::Shape<4>> model; }
