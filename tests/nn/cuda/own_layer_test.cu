// SPDX-License-Identifier: Apache-2.0
// A layer of a user, written once for both devices: alone and in a network, launched and replayed.
#include "train/cuda/step_twins.hpp"

#include <skein/nn/fuse.hpp>

#include "../../support/device_harness.hpp"

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
