// expect: this layer refuses its input shape: see its describe()
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/model.hpp>

namespace sk = skein;

struct Even {  // wants an even number of features
  static constexpr sk::LayerInfo describe(sk::Extents in) {
    return {.output = in, .fault = in.last() % 2 ? sk::nn::Fault::own : sk::nn::Fault::none};
  }
  template <class In, class Frame> static void forward(Frame&) {}
  template <class In, class Frame> static void backward(Frame&) {}
};

#ifdef SKEIN_TWIN
using Input = sk::Shape<4>;
#else
using Input = sk::Shape<3>;
#endif
int main() { sk::Model<sk::nn::Sequential<Even>, Input> model; }
