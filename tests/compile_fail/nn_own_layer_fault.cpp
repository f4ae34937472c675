// expect: this layer has a fault that is none of a layer
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/layer.hpp>
#include <skein/nn/model.hpp>

namespace sk = skein;

struct Wide {
  static constexpr sk::LayerInfo describe(sk::Extents in) {
#ifdef SKEIN_TWIN
    return {.output = in, .fault = in.count() < 8 ? sk::nn::Fault::own : sk::nn::Fault::none};
#else
    return {.output = in, .fault = sk::nn::Fault::concat_differs};
#endif
  }
  template <class In, class Frame> static void forward(Frame&) {}
  template <class In, class Frame> static void backward(Frame&) {}
};

int main() { sk::Model<Wide, sk::Shape<8>> model; }
