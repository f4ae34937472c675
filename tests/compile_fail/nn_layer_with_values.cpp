// expect: or describe() does not take an sk::Edge: a layer is a type without values
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/expression_layer.hpp>

#include <skein/nn/model.hpp>

namespace sk = skein;

struct Own {
#ifdef SKEIN_TWIN
  static constexpr sk::LayerSpec describe(sk::Edge in) { return {.output = in}; }
  static void forward(auto& f) { f.y() = 2.0f * f.x(); }
  static void backward(auto& f) { f.dx() = 2.0f * f.dy(); }
#else
  float factor = 2;
  sk::LayerSpec describe(sk::Edge in) const { return {.output = in}; }
  void forward(auto& f) { f.y() = factor * f.x(); }
  void backward(auto& f) { f.dx() = factor * f.dy(); }
#endif
};

int main() { sk::Model<sk::nn::Sequential<Own>, sk::Shape<4>> model; }
