// expect: this layer lacks: static constexpr skein::LayerSpec describe(skein::Edge in)
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/model.hpp>

namespace sk = skein;

struct Own {
#ifdef SKEIN_TWIN
  static constexpr sk::LayerInfo describe(sk::Extents in) { return {.output = in}; }
#endif
  template <class In, class Frame> static void forward(Frame&) {}
  template <class In, class Frame> static void backward(Frame&) {}
};

int main() { sk::Model<sk::nn::Sequential<Own>, sk::Shape<4>> model; }
