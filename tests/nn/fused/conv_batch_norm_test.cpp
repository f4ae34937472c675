// SPDX-License-Identifier: Apache-2.0
// Conv2d with BatchNorm, and with the Relu behind it, as one layer: types, gradients by finite differences, and whole networks,
// fused and not: outputs, gradients and running statistics of steps by one to three workers, outputs in evaluation.
#include <catch2/catch.hpp>

#include <skein/nn/fused/conv_batch_norm.hpp>
#include <skein/nn/fused/conv_relu_pool.hpp>
#include <skein/nn/fused/rectified_residual.hpp>
#include <skein/nn/tanh.hpp>

#include "support/fused_networks.hpp"
#include "support/layer_harness.hpp"

using namespace skein;
using nn::BatchNorm;
using nn::Conv2d;
using nn::Relu;
using support::LayerHarness;

namespace {
using None = nn::Identity;  // between two layers it keeps them apart
template <class... Ls> using Net = nn::Sequential<Ls...>;
using Slow = BatchNorm<Epsilon<1, 1000>, Momentum<1, 5>>;

template <int F, class... Os> using Fused = nn::ConvBatchNorm<Conv2d<F, Os...>, Slow, true>;
template <int F, class... Os> using Linear = nn::ConvBatchNorm<Conv2d<F, Os...>, Slow, false>;

template <class L, class In> void differences(long batch, int workers = 1) {
  LayerHarness<L, In> h(batch, workers);
  constexpr int norm = LayerHarness<L, In>::info.entries() - 2;
  h.set_parameter(norm, [](long i) { return 1 + 0.3 * support::wave(i, 0.5); });
  h.set_parameter(norm + 1, [](long i) { return 0.4 * support::wave(i, 0.8); });
  h.check_gradients(1e-5);
}
}  // namespace

TEST_CASE("Conv2d, BatchNorm and Relu become one layer, with the parameters, buffers and names of the three") {
  using First = Conv2d<16, Kernel<3>, Padding<1>>;
  using Made = nn::Fused<Net<First, BatchNorm<>, Relu, Conv2d<8, Kernel<1>, NoBias>, Slow, nn::GlobalAvgPool>, Cpu>;
  STATIC_REQUIRE(Made::size == 3);
  STATIC_REQUIRE(std::is_same_v<TypeAt<Made::children, 0>::composite, nn::ConvBatchNorm<First, BatchNorm<>, true>>);
  STATIC_REQUIRE(
      std::is_same_v<TypeAt<Made::children, 1>::composite, nn::ConvBatchNorm<Conv2d<8, Kernel<1>, NoBias>, Slow, false>>);
  using M = Model<Net<First, BatchNorm<>, Relu>, Shape<8, 8, 3>>;
  CHECK(M::parameter("1.bias").extents == Extents{1, {16}});
  CHECK(M::program.buffers().size() == 2);
  constexpr auto info = nn::ConvBatchNorm<First, BatchNorm<>, true>::describe({3, {8, 8, 3}});
  STATIC_REQUIRE(info.entries() == 4);
  STATIC_REQUIRE(info.buffer_entries() == 2);
  STATIC_REQUIRE(info.couples_batch);
  STATIC_REQUIRE_FALSE(info.saves_output);
  CHECK(summary<M>().find("with BatchNorm, fused, 3 layers") != std::string::npos);
}

TEST_CASE("Convolutions with BatchNorm: gradients are those of finite differences") {
  differences<Fused<16, Kernel<3>, Padding<1>, NoBias>, Shape<5, 6, 8>>(3);
  differences<Linear<16, Kernel<3>, Padding<1>>, Shape<5, 6, 16>>(3, 2);
  differences<Fused<6, Kernel<3>, Stride<2>>, Shape<7, 7, 3>>(5, 3);    // vectors that are not full
  differences<Fused<4, Kernel<3>, Padding<1>>, Shape<6, 9, 2>>(4);      // over the width
  differences<Linear<12, Kernel<1>, Groups<2>>, Shape<3, 3, 4>>(4, 2);  // plain loops
}

TEST_CASE("Networks with batch normalisation, fused and not, give the same") {
  support::agree<
      Net<Conv2d<16, Kernel<3>, Padding<1>, NoBias>, Slow, Relu, Conv2d<16, Kernel<3>, Padding<1>>, Slow, nn::GlobalAvgPool>,
      Net<Conv2d<16, Kernel<3>, Padding<1>, NoBias>, None, Slow, None, Relu, Conv2d<16, Kernel<3>, Padding<1>>, None, Slow,
          nn::GlobalAvgPool>,
      Shape<12, 12, 3>>(3);
  support::agree<Net<Conv2d<5, Kernel<3>, Stride<2>>, Slow, Relu, Conv2d<40, Kernel<3>, Padding<1>>, Slow, Relu,
                     Conv2d<48, Kernel<1>, NoBias>, Slow, Relu, nn::GlobalAvgPool>,
                 Net<Conv2d<5, Kernel<3>, Stride<2>>, None, Slow, None, Relu, Conv2d<40, Kernel<3>, Padding<1>>, None, Slow, None,
                     Relu, Conv2d<48, Kernel<1>, NoBias>, None, Slow, None, Relu, nn::GlobalAvgPool>,
                 Shape<13, 11, 3>>(4);
}

TEST_CASE("In evaluation the normalisation is in the weights, and follows them") {
  using N =
      Net<Conv2d<16, Kernel<3>, Padding<1>, NoBias>, Slow, Relu, Conv2d<16, Kernel<3>, Padding<1>>, Slow, nn::GlobalAvgPool>;
  Model<N, Shape<12, 12, 3>> model{Seed{7}};
  Executor executor(model, nn::Mse{}, {.capacity = 4, .threads = 1});
  support::Batch<Shape<12, 12, 3>, float, 16> batch(4);
  const auto outputs = [&] {
    executor.evaluate(batch.view());
    return std::vector<double>(executor.outputs(), executor.outputs() + 4 * 16);
  };
  executor.forward_backward(batch.view());  // running statistics that are not those of the start
  const auto before = outputs();
  for (float& p : model.modify()) p *= 1.5f;
  const auto after = outputs();
  CHECK(support::apart(before, after) > 1e-3);
  for (float& p : model.modify()) p /= 1.5f;
  CHECK(support::apart(outputs(), before) < 1e-5);
  for (float& b : model.buffers()) b *= 0.5f;  // as a step would, without a new version of the weights
  CHECK(support::apart(outputs(), before) > 1e-3);
}

TEST_CASE("A batch of one value of each channel is refused in the name of the normalisation, not of the convolution") {
  Model<Net<nn::Tanh, Conv2d<4, Kernel<3>>, BatchNorm<>, Relu>, Shape<3, 3, 1>> model;
  Executor executor(model, nn::Mse{}, {.capacity = 2, .threads = 1});
  support::Batch<Shape<3, 3, 1>, float, 4> one(1), two(2);
  CHECK_THROWS_WITH(executor.forward_backward(one.view()),
                    Catch::StartsWith("layer 2 (BatchNorm of 4 channels) trains on a batch of 1 sample"));
  CHECK_NOTHROW(executor.forward_backward(two.view()));
}
