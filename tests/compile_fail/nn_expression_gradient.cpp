// expect: a gradient takes sums over the samples: sum_leading(e), sum_batch(e) or sum_all(e)
// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/expression_layer.hpp>

#include <skein/nn/check.hpp>

namespace sk = skein;
using namespace sk::literals;

struct Own {
  static constexpr sk::LayerSpec describe(sk::Edge in) { return {.output = in, .parameters = {{"shift", {in.last()}}}}; }
  static void forward(auto& f) { f.y() = f.x() + f.parameter("shift"_p); }
  static void backward(auto& f) {
#ifdef SKEIN_TWIN
    f.gradient("shift"_p) += sum_leading(f.dy());
#else
    f.gradient("shift"_p) += f.dy();
#endif
  }
};

int main() { sk::assert_layer<Own, sk::Shape<4>>(); }
