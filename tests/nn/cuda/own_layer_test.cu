// SPDX-License-Identifier: Apache-2.0
// A layer of a user, written once for both devices: alone and in a network, launched and replayed.
#include "train/cuda/step_twins.hpp"

#include <skein/nn/fused_network.hpp>

#include "../../support/device_harness.hpp"
#include "../../support/own_layers.hpp"

namespace sk = skein;
namespace nn = skein::nn;

namespace own_layer {
// [quote own_layer]
/// y = scale * x, with one trained factor a feature. The kernels: function objects over an index.
template <class Scalar> struct Scaled {
  const Scalar *x, *scale;
  Scalar* y;
  long features, pitch;
  constexpr void operator()(long i) const { y[i] = i % pitch < features ? scale[i % pitch] * x[i] : Scalar(0); }
};
template <class Scalar> struct ScaleGradient {  // one index a feature: no two write one value
  const Scalar *x, *dy;
  Scalar* gradient;
  long batch, pitch;
  constexpr void operator()(long feature) const {
    for (long i = feature; i < batch * pitch; i += pitch) gradient[feature] += dy[i] * x[i];
  }
};
struct Scale {
  static constexpr sk::LayerInfo describe(sk::Extents in) {
    return {.output = in,
            .parameters = {{{"scale", {1, {in.last()}}, sk::Init::ones}}},
            .flops = in.count(),
            .saves_input = true,
            .fault = in.flat() ? nn::Fault::none : nn::Fault::wants_flat};
  }
  template <class In, class Frame> static void forward(Frame& f) { run<In>(f, f.x, f.y); }
  template <class In, class Frame> static void backward(Frame& f) {
    using Scalar = typename Frame::Scalar;
    sk::ops::for_each<typename Frame::Device>(
        In::count, ScaleGradient<Scalar>{f.x, f.dy, f.gradients, f.batch, sk::sample_pitch(In::extents)});
    if (f.dx) run<In>(f, f.dy, f.dx);
  }

 private:
  template <class In, class Frame, class Scalar> static void run(Frame& f, const Scalar* from, Scalar* to) {
    constexpr long pitch = sk::sample_pitch(In::extents);
    sk::ops::for_each<typename Frame::Device>(f.batch * pitch, Scaled<Scalar>{from, f.parameters, to, In::count, pitch});
  }
};
// [end]
using Net = nn::Sequential<nn::Linear<10>, Scale, nn::Tanh, nn::Linear<3>>;
}  // namespace own_layer

TEMPLATE_TEST_CASE("A user's layer runs on both devices", "[nn][cuda]", float, double) {
  support::agree<own_layer::Scale, sk::Shape<7>, TestType>({.batch = 5, .accumulate = true});
  support::agree<own_layer::Scale, sk::Shape<64>, TestType>({.batch = 9, .wants_dx = false});
}
TEST_CASE("A network with a user's layer trains on both devices", "[nn][cuda]") {
  twins::agree<own_layer::Net, sk::Shape<6>, double>(nn::Mse{}, sk::optim::Adam{.lr = 0.01f});
}

namespace {
template <class L, class In, class Scalar = float> void expressions(const support::AgreeOptions& o = {}) {
  support::agree<nn::ExpressionLayer<L>, In, Scalar>(o);
}
template <class L> using Around = nn::Sequential<nn::Linear<24>, L, nn::Tanh, nn::Linear<3>>;
}  // namespace

TEMPLATE_TEST_CASE("Layers of expressions are the same text on both devices", "[nn][cuda]", float, double) {
  expressions<own_layers::Scale, sk::Shape<7>, TestType>({.batch = 5, .accumulate = true});
  expressions<own_layers::Scale, sk::Shape<300>, TestType>({.batch = 70, .wants_dx = false});
  expressions<own_layers::Squash, sk::Shape<1>, TestType>({.batch = 1});
  expressions<own_layers::Squash, sk::Shape<4, 20>, TestType>({.batch = 9});
  expressions<own_layers::Squash, sk::Shape<3, 2, 5>, TestType>({.batch = 6, .accumulate = true});
}
TEST_CASE("A network with layers of expressions trains on both devices, launched and replayed", "[nn][cuda]") {
  twins::agree<Around<own_layers::Scale>, sk::Shape<6>, double>(nn::Mse{}, sk::optim::Adam{.lr = 0.01f});
  twins::agree<Around<own_layers::Squash>, sk::Shape<6>, float>(nn::Mse{}, sk::optim::Adam{.lr = 0.01f});
}
TEST_CASE("Layers of expressions run on 16-bit samples of a device", "[nn][cuda]") {
  STATIC_REQUIRE(nn::computes_in<nn::ExpressionLayer<own_layers::Squash>, sk::Cuda, sk::bf16>);
  using P = sk::precision::bf16;
  const auto there =
      twins::run<Around<own_layers::Squash>, sk::Shape<6>, P, sk::Cuda>(nn::Mse{}, sk::optim::Sgd{}, twins::Plan{});
  const auto here = twins::run<Around<own_layers::Squash>, sk::Shape<6>, P, sk::Cpu>(nn::Mse{}, sk::optim::Sgd{}, twins::Plan{});
  CHECK(twins::apart(there.losses, here.losses) < 0.01);
}
