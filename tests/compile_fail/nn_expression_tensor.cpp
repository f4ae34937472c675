// expect: a layer's expression holds a tensor with extents of run time: what it reads comes from its frame
// SPDX-License-Identifier: Apache-2.0
#include <skein/tensor/functions.hpp>

#include <skein/nn/check.hpp>
#include <skein/tensor/tensor.hpp>

namespace sk = skein;

struct Own {
  static constexpr sk::LayerSpec describe(sk::Edge in) { return {.output = in}; }
  static void forward(auto& f) {
#ifdef SKEIN_TWIN
    f.y() = 2 * f.x();
#else
    f.y() = sk::Tensor<float, 1>{2, 2, 2, 2} * f.x();
#endif
  }
  static void backward(auto& f) { f.dx() = 2 * f.dy(); }
};

int main() { sk::assert_layer<Own, sk::Shape<4>>(); }
