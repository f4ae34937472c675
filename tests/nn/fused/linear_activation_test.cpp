// SPDX-License-Identifier: Apache-2.0
// Linear and an activation as one layer: found by the rewriting, and equal to its parts.
#include <catch2/catch.hpp>

#include <skein/nn/fused_network.hpp>
#include <skein/nn/fused/linear_activation.hpp>
#include <skein/nn/gelu.hpp>
#include <skein/nn/leaky_relu.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/sigmoid.hpp>
#include <skein/nn/tanh.hpp>

#include "../../support/close.hpp"
#include "../../support/layer_harness.hpp"

namespace sk = skein;
namespace nn = skein::nn;
using support::LayerHarness;

namespace {

template <class A, class B> using Unit = nn::FusedLayer<nn::LinearActivation<A, B>, A, B>;
using Net = nn::Fused<nn::Sequential<nn::Linear<8>, nn::Relu, nn::Linear<4>, nn::Gelu, nn::Linear<2>, nn::Tanh>, sk::Cpu>;
static_assert(
    std::is_same_v<Net, nn::Sequential<Unit<nn::Linear<8>, nn::Relu>, nn::Linear<4>, nn::Gelu, Unit<nn::Linear<2>, nn::Tanh>>>,
    "Gelu does not know its slope from its output");

/// One composite beside its two parts, with the same weights.
template <int In, class L, class A, class S> void beside(long batch, int workers) {
  using Middle = sk::Shape<L::describe({1, {In}}).output.e[0]>;
  LayerHarness<nn::LinearActivation<L, A>, sk::Shape<In>, S> one(batch, workers, true);
  LayerHarness<L, sk::Shape<In>, S> first(batch, workers, true);
  LayerHarness<A, Middle, S> second(batch, workers);
  static_assert(one.info.parameters[0].extents == first.info.parameters[0].extents && one.info.entries() == first.info.entries());
  for (int turn = 0; turn < 2; ++turn) {  // the second adds to the first's gradients
    one.forward();
    first.forward();
    second.set_x([&](long b, long i) { return first.y_at(b, i); });
    second.forward();
    one.backward(true, turn == 1);
    second.backward();
    first.set_dy([&](long b, long i) { return second.dx_at(b, i); });
    first.backward(true, turn == 1);
    long wrong = 0;
    const auto same = [](S a, S b) { return support::close(a, b, support::Roundings::arithmetic, 8); };
    for (long b = 0; b < batch; ++b) {
      for (long j = 0; j < Middle::count; ++j) wrong += !same(one.y_at(b, j), second.y_at(b, j));
      for (long i = 0; i < In; ++i) wrong += !same(one.dx_at(b, i), first.dx_at(b, i));
    }
    for (long i = 0; i < one.gradients().size(); ++i) wrong += !same(one.gradients()[i], first.gradients()[i]);
    INFO("in " << In << " out " << Middle::count << " batch " << batch << " workers " << workers << " turn " << turn);
    CHECK(wrong == 0);
    CHECK(one.intact());
  }
}
template <int In, class L, class A> void all() {
  for (long batch : {0L, 1L, 5L}) beside<In, L, A, float>(batch, 1);
  beside<In, L, A, float>(13, 3);
  beside<In, L, A, double>(5, 2);
}

}  // namespace

TEST_CASE("LinearActivation equals its parts", "[linear]") {
  all<1, nn::Linear<80>, nn::Relu>();
  all<17, nn::Linear<10>, nn::Relu>();
  all<40, nn::Linear<1>, nn::Sigmoid>();
  all<2, nn::Linear<3, sk::NoBias>, nn::Tanh>();
  all<10, nn::Linear<3>, nn::Tanh>();
  all<84, nn::Linear<120, sk::NoBias>, nn::LeakyRelu<>>();
  beside<300, nn::Linear<512>, nn::Relu, float>(7, 1);  // the library's product; a divided gradient
  beside<300, nn::Linear<512>, nn::Relu, float>(7, 2);
}
TEST_CASE("LinearActivation: gradients are those of finite differences", "[linear]") {
  LayerHarness<nn::LinearActivation<nn::Linear<10>, nn::Sigmoid>, sk::Shape<17>> h(3);
  h.check_gradients(1e-6, 60);
}
