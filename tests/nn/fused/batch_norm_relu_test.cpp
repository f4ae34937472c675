// SPDX-License-Identifier: Apache-2.0
// BatchNorm and Relu as one layer: gradients by finite differences, in training and in evaluation, and whole networks, fused and
// not.
#include <catch2/catch.hpp>

#include <skein/nn/conv2d.hpp>
#include <skein/nn/fused/batch_norm_relu.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/residual.hpp>

#include "support/fused_networks.hpp"
#include "support/layer_harness.hpp"
#include "support/thrown.hpp"

using namespace skein;
using nn::BatchNorm;
using nn::Relu;
using support::LayerHarness;

namespace {
using None = nn::Identity;  // between two layers it keeps them apart
template <class... Ls> using Net = nn::Sequential<Ls...>;

template <class In> void differences(long batch, int workers) {
  LayerHarness<nn::BatchNormRelu<BatchNorm<Epsilon<1, 1000>>>, In> h(batch, workers);
  h.set_parameter(0, [](long i) { return 1 + 0.3 * support::wave(i, 0.5); });
  h.set_parameter(1, [](long i) { return 0.4 * support::wave(i, 0.8); });
  h.check_gradients(1e-5);
  h.context.phase = nn::Phase::evaluation;
  for (long i = 0; i < h.buffers.size() / 2; ++i) h.buffers[i] = 0.3;
  h.check_gradients(1e-5);
}
}  // namespace

TEST_CASE("BatchNorm and Relu become one layer") {
  using Made = nn::Fused<Net<nn::Linear<8>, BatchNorm<>, Relu, BatchNorm<>>, Cpu>;
  STATIC_REQUIRE(Made::size == 3);
  STATIC_REQUIRE(std::is_same_v<TypeAt<Made::children, 1>::composite, nn::BatchNormRelu<BatchNorm<>>>);
  STATIC_REQUIRE_FALSE(nn::BatchNormRelu<BatchNorm<>>::describe({1, {8}}).saves_output);
}

TEST_CASE("BatchNorm with Relu: gradients are those of finite differences") {
  differences<Shape<5>>(6, 2);
  differences<Shape<16>>(5, 1);
  differences<Shape<2, 2, 6>>(5, 3);
  differences<Shape<2, 3, 20>>(3, 2);
}

TEST_CASE("Networks with BatchNorm and Relu, fused and not, give the same") {
  support::agree<Net<nn::Linear<21>, BatchNorm<>, Relu, nn::Linear<5>>,
                 Net<nn::Linear<21>, BatchNorm<>, None, Relu, nn::Linear<5>>, Shape<9>>(3);
  using Conv = nn::Conv2d<16, Kernel<3>, Padding<1>>;  // before activation, as ResNetV2 has it
  support::agree<Net<Conv, nn::Residual<Net<BatchNorm<>, Relu, Conv>>, nn::GlobalAvgPool>,
                 Net<Conv, nn::Residual<Net<BatchNorm<>, None, Relu, Conv>>, nn::GlobalAvgPool>, Shape<7, 6, 3>>(3);
}

TEST_CASE("Behind BatchNorm and Relu as one layer a batch of one value a channel is refused too", "[nn]") {
  LayerHarness<nn::BatchNormRelu<BatchNorm<>>, Shape<5>> h(1, 1);
  CHECK(support::thrown<ArgumentError>([&] { h.forward(); }).find("BatchNorm of 5 channels") != std::string::npos);
}
