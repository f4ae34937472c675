// expect: a parameter of a layer is named by a literal with _p behind it
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/check.hpp>
#include <skein/nn/expression_layer.hpp>

namespace sk = skein;
using namespace sk::literals;

struct Own {
  static constexpr sk::LayerSpec describe(sk::Edge in) {
    return {.output = in, .parameters = {{"scale", {in.last()}}}, .backward_reads = sk::Reads::x};
  }
#ifdef SKEIN_TWIN
  static void forward(auto& f) { f.y() = f.x() * f.parameter("scale"_p); }
#else
  static void forward(auto& f) { f.y() = f.x() * f.parameter("scale"); }
#endif
  static void backward(auto& f) {
    f.gradient("scale"_p) += sum_leading(f.dy() * f.x());
    f.dx() = f.dy() * f.parameter("scale"_p);
  }
};

int main() { sk::assert_layer<Own, sk::Shape<4>>(); }
