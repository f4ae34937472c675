// expect: this layer refuses its input shape: see its describe()
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/model.hpp>

namespace sk = skein;

struct Own {  // wants an even number of features
#ifdef SKEIN_TWIN
  static constexpr sk::LayerSpec describe(sk::Edge in) { return {.output = in, .accepts = in.last() % 2 == 0}; }
#else
  static constexpr sk::LayerSpec describe(sk::Edge in) { return {.output = in, .accepts = in.last() % 2 != 0}; }
#endif
  static void forward(auto& f) { f.y() = 2 * f.x(); }
  static void backward(auto& f) { f.dx() = 2 * f.dy(); }
};

int main() { sk::Model<sk::nn::Sequential<Own>, sk::Shape<4>> model; }
