// expect: or they are private, or not static, or describe() does not take an sk::Edge
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/model.hpp>

namespace sk = skein;
using namespace sk::literals;

class Own {
#ifdef SKEIN_TWIN
 public:
#endif
  static constexpr sk::LayerSpec describe(sk::Edge in) { return {.output = in}; }
  static void forward(auto& f) { f.y() = f.x(); }
  static void backward(auto& f) { f.dx() = f.dy(); }
};

int main() { sk::Model<sk::nn::Sequential<Own>, sk::Shape<4>> model; }
