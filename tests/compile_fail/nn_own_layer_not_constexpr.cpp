// expect: this layer's describe() gives no constant: it is static constexpr
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/model.hpp>

namespace sk = skein;
using namespace sk::literals;

struct Own {
#ifdef SKEIN_TWIN
  static constexpr sk::LayerSpec describe(sk::Edge in) { return {.output = in}; }
#else
  static sk::LayerSpec describe(sk::Edge in) { return {.output = in}; }
#endif
  static void forward(auto& f) { f.y() = f.x(); }
  static void backward(auto& f) { f.dx() = f.dy(); }
};

int main() { sk::Model<sk::nn::Sequential<Own>, sk::Shape<4>> model; }
