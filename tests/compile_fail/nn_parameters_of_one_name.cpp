// expect: each parameter of a layer has a name of its own
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/model.hpp>

namespace sk = skein;
using namespace sk::literals;

struct Own {
  static constexpr sk::LayerSpec describe(sk::Edge in) {
#ifdef SKEIN_TWIN
    return {.output = in, .parameters = {{"w", {in.last()}}, {"v", {in.last()}}}};
#else
    return {.output = in, .parameters = {{"w", {in.last()}}, {"w", {in.last()}}}};
#endif
  }
  static void forward(auto& f) { f.y() = f.x(); }
  static void backward(auto& f) { f.dx() = f.dy(); }
};

int main() { sk::Model<sk::nn::Sequential<Own>, sk::Shape<4>> model; }
