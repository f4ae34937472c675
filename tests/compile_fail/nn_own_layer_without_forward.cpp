// expect: this layer lacks: template <class In, class Frame> static void forward(Frame& f)
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/model.hpp>

namespace sk = skein;

struct Own {
  static constexpr sk::LayerInfo describe(sk::Extents in) { return {.output = in}; }
#ifdef SKEIN_TWIN
  template <class In, class Frame> static void forward(Frame&) {}
#endif
  template <class In, class Frame> static void backward(Frame&) {}
};

int main() { sk::Model<sk::nn::Sequential<Own>, sk::Shape<4>> model; }
