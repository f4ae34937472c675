// expect: the extents of these operands differ: aligned at the last, each must be equal or 1
// SPDX-License-Identifier: Apache-2.0
#include <skein/tensor/functions.hpp>

#include <skein/nn/check.hpp>

namespace sk = skein;
using namespace sk::literals;

struct Own {
#ifdef SKEIN_TWIN
  static constexpr sk::LayerSpec describe(sk::Edge in) { return {.output = in, .parameters = {{"shift", {in.last()}}}}; }
#else
  static constexpr sk::LayerSpec describe(sk::Edge in) { return {.output = in, .parameters = {{"shift", {in[0] + 1}}}}; }
#endif
  static void forward(auto& f) { f.y() = f.x() + f.parameter("shift"_p); }
  static void backward(auto& f) { f.dx() = f.dy(); }
};

int main() { sk::assert_layer<Own, sk::Shape<4>>(); }
