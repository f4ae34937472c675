// expect: f.dx() is written and not read, since it is not there where no layer wants it
// SPDX-License-Identifier: Apache-2.0
#include <skein/tensor/expression.hpp>
#include <skein/nn/expression_layer.hpp>

namespace sk = skein;
namespace nn = sk::nn;
using namespace sk::literals;

struct Scale {
  static constexpr sk::LayerSpec describe(sk::Edge in) {
    return {.output = in, .parameters = {{"scale", {in.last()}, sk::Init::ones}}, .backward_reads = sk::Reads::x};
  }
  static void forward(auto& f) { f.y() = f.x() * f.parameter("scale"_p); }
  static void backward(auto& f) {
    const auto dx = f.dy() * f.parameter("scale"_p);
    f.dx() = dx;
#ifndef SKEIN_TWIN
    f.gradient("scale"_p) += sum_leading(f.dx() * f.x());
#else
    f.gradient("scale"_p) += sum_leading(dx * f.x());
#endif
  }
};
void backward(nn::ExpressionFrame<Scale, sk::Shape<4>, nn::Frame<float, sk::Cpu>, true>& f) { Scale::backward(f); }
