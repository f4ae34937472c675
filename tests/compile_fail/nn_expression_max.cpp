// expect: the larger of two values is maximum(a, b)
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/expression_layer.hpp>

#include <skein/nn/check.hpp>
#include <skein/tensor/reduce.hpp>

namespace sk = skein;

struct Own {
  static constexpr sk::LayerSpec describe(sk::Edge in) { return {.output = in, .backward_reads = sk::Reads::x}; }
  static void forward(auto& f) {
#ifdef SKEIN_TWIN
    f.y() = maximum(f.x(), 0);
#else
    f.y() = max(f.x(), 0);
#endif
  }
  static void backward(auto& f) { f.dx() = where(f.x() > 0, f.dy(), 0); }
};

int main() { sk::assert_layer<Own, sk::Shape<4>>(); }
