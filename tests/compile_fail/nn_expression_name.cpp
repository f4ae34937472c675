// expect: this layer has no parameter of this name: see its describe()
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/expression_layer.hpp>

#include <skein/nn/check.hpp>

namespace sk = skein;
using namespace sk::literals;

struct Own {
  static constexpr sk::LayerSpec describe(sk::Edge in) { return {.output = in, .parameters = {{"shift", {in.last()}}}}; }
#ifdef SKEIN_TWIN
  static void forward(auto& f) { f.y() = f.x() + f.parameter("shift"_p); }
#else
  static void forward(auto& f) { f.y() = f.x() + f.parameter("shfit"_p); }
#endif
  static void backward(auto& f) { f.dx() = f.dy(); }
};

int main() { sk::assert_layer<Own, sk::Shape<4>>(); }
