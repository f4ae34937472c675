// expect: the sum has other extents than the parameter: sum_leading(e) has the last extent of e, sum_batch(e) all of them, sum_all(e) is (1)
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
    f.gradient("shift"_p) += sum_all(f.dy());
#endif
  }
};

int main() { sk::assert_layer<Own, sk::Shape<4>>(); }
