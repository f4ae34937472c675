// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <skein/nn/fused_network.hpp>
#include <skein/nn/fused/conv_relu_pool.hpp>

#include <skein/train/predictor.hpp>

#include "fixtures/conv.hpp"
#include "support/conv_cases.hpp"

using namespace skein;
using nn::ConvReluPool;
using nn::MaxPool2d;
using nn::NoPool;
using support::composite_follows;
using support::LayerHarness;
using support::matches_pytorch;

namespace {
template <class... Ls> using Type = typename nn::Fusion<Cpu, Ls...>::type;
template <class L, class In, class Scalar = float>
constexpr std::string_view kernel = L::template kernel<In, nn::Frame<Scalar, Cpu>>();
using First = nn::Conv2d<6, Kernel<5>, Padding<2>>;
using Second = nn::Conv2d<16, Kernel<5>>;
}  // namespace

TEST_CASE("Convolution, ReLU and max-pooling become one layer, in either order") {
  STATIC_REQUIRE(std::same_as<Type<First, nn::Relu, MaxPool2d<2>>, ConvReluPool<First, true, MaxPool2d<2>>>);
  STATIC_REQUIRE(std::same_as<Type<First, MaxPool2d<2>, nn::Relu>, ConvReluPool<First, true, MaxPool2d<2>>>);
  STATIC_REQUIRE(std::same_as<Type<First, MaxPool2d<2>>, ConvReluPool<First, false, MaxPool2d<2>>>);
  STATIC_REQUIRE(std::same_as<Type<First, nn::Relu>, ConvReluPool<First, true, NoPool>>);
  using Gaps = nn::Sequential<First, MaxPool2d<2, Stride<3>>, nn::Relu>;  // each a layer of its own
  STATIC_REQUIRE(nn::Fused<Gaps, Cpu>::size == 3);
  STATIC_REQUIRE(nn::Fused<nn::Sequential<First, nn::Relu, MaxPool2d<1, Stride<2>>>, Cpu>::size == 2);
  using L = Type<First, nn::Relu, MaxPool2d<2>>;
  STATIC_REQUIRE(L::describe({3, {28, 28, 1}}).output == Extents{3, {14, 14, 6}});
  STATIC_REQUIRE(L::describe({3, {28, 28, 1}}).stored_parameters() == First::describe({3, {28, 28, 1}}).stored_parameters());
  STATIC_REQUIRE(L::describe({3, {1, 1, 1}}).fault == nn::Fault::window_too_large);
  using Net = nn::Fused<nn::Sequential<First, nn::Relu, MaxPool2d<2>, Second, nn::Relu>, Cpu>;
  STATIC_REQUIRE(Net::size == 2);
}
TEST_CASE("A convolution that is not direct says what runs it and what follows") {
  using Dilated = nn::Conv2d<8, Kernel<3>, Dilation<2>>;
  using Many = nn::Conv2d<256, Kernel<3>>;
  constexpr bool onednn = SKEIN_WITH_ONEDNN;
  CHECK(kernel<ConvReluPool<Dilated, true, NoPool>, Shape<12, 11, 4>> == (onednn ? "oneDNN, then ReLU in place" : "reference"));
  CHECK(kernel<ConvReluPool<Dilated, true, MaxPool2d<2>>, Shape<12, 11, 4>, double> == "reference");
  const std::string many(ops::Conv2d<Cpu, float, ops::Conv2dGeometry{8, 8, 256, 256, 3}>::name);
  CHECK(kernel<ConvReluPool<Many, true, NoPool>, Shape<8, 8, 256>> ==
        (many == "reference" ? many : many + ", then ReLU in place"));
  CHECK(kernel<ConvReluPool<Many, true, MaxPool2d<2>>, Shape<8, 8, 256>> ==
        (many == "reference" ? many : many + ", then ReLU and pooling in one pass"));
#if SKEIN_WITH_XSIMD
  using Gaps = MaxPool2d<2, Stride<3>>;  // which no direct kernel makes
  CHECK(kernel<ConvReluPool<Second, true, Gaps>, Shape<14, 14, 6>> == "direct, then ReLU and pooling in one pass");
#endif
}
#if SKEIN_WITH_XSIMD
TEST_CASE("No network of few channels falls back silently") {
  STATIC_REQUIRE(ConvReluPool<First, true, MaxPool2d<2>>::describe({3, {28, 28, 1}}).saved_for_backward == 0);
  CHECK(std::string(kernel<ConvReluPool<First, true, MaxPool2d<2>>, Shape<28, 28, 1>>).find("direct over the width") == 0);
  CHECK(std::string(kernel<ConvReluPool<Second, true, MaxPool2d<2>>, Shape<14, 14, 6>>).find("direct over the filters") == 0);
  CHECK(std::string(kernel<ConvReluPool<nn::Conv2d<5, Kernel<3>, Stride<2>>, true, MaxPool2d<3, Stride<2>>>, Shape<27, 31, 5>>)
            .find("direct") == 0);
  CHECK(std::string(kernel<ConvReluPool<nn::Conv2d<7, Kernel<4>>, true, NoPool>, Shape<19, 23, 3>>).find("direct") == 0);
}
#endif

TEST_CASE("a value that is no number wins wherever it stands in its window") {
  using Net = nn::Sequential<nn::Conv2d<4, Kernel<1>>, MaxPool2d<2>>;
  Model<Net, Shape<16, 16, 1>> model{Seed{3}};
  Predictor predictor{model, {.capacity = 1, .threads = 1}};
  for (const long at : {0, 1, 16, 17}) {
    Tensor<float, 4> x(dims(1, 16, 16, 1));
    for (long i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(i % 7);
    x.data()[at] = NAN;
    const auto y = predictor.predict(x);
    CHECK(std::count_if(y.begin(), y.end(), [](float v) { return v != v; }) == 4);
  }
}

TEST_CASE("an output that ReLU has switched off reads nothing of the pooling's padding") {
  using Net =
      nn::Sequential<nn::Conv2d<10, Kernel<5>, Stride<2>, Padding<2>, NoBias>, MaxPool2d<2, Stride<2>, Padding<1>>, nn::Relu>;
  using In = Shape<4, 8, 32>;
  Model<Net, In> model{Seed{1}};
  constexpr long pitch = sample_pitch(In::extents), out = row_pitch(decltype(model)::output_extents.count());
  Arena<float> x(pitch), t(out);
  for (long i = 0; i < pitch; ++i) x.data()[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
  for (int trial = 0; trial < 10; ++trial) {
    for (int k = 0; k < 40; ++k) {  // memory that others have used is full of NaN
      std::vector<std::unique_ptr<unsigned char[]>> others;
      for (int i = 0; i < 8; ++i) {
        const std::size_t n = std::size_t{1000} << (k % 8);
        std::memset(others.emplace_back(new unsigned char[n]).get(), 0xff, n);
      }
    }
    Executor executor{model, nn::Mse{}, {.capacity = 1, .threads = 1}};
    (void)executor.forward_backward(BatchView<float>{x.data(), pitch, nullptr, t.data(), out, 1, 1});
    const auto gradients = std::as_const(model).gradients();
    REQUIRE(std::all_of(gradients.begin(), gradients.end(), [](float g) { return g == g; }));
  }
}

TEST_CASE("Conv2d, Relu, MaxPool2d: LeNet's") {
  composite_follows<First, true, MaxPool2d<2>, Shape<28, 28, 1>>();
  composite_follows<Second, true, MaxPool2d<2>, Shape<14, 14, 6>>();
  using L = ConvReluPool<Second, true, MaxPool2d<2>>;
  support::follows_the_loops<L, Second, Shape<14, 14, 6>, float>(L::geometry({3, {14, 14, 6}}), 128);
}
TEST_CASE("Conv2d, Relu, MaxPool2d: odd widths, strides, paddings, overlapping windows") {
  composite_follows<nn::Conv2d<5, Kernel<3>, Stride<2>, Padding<1>>, true, MaxPool2d<3, Stride<2>>, Shape<27, 31, 5>>();
  composite_follows<nn::Conv2d<10, Kernel<3>, Padding<1>, NoBias>, true, MaxPool2d<3, Stride<2>, Padding<1>>, Shape<13, 17, 3>>();
  composite_follows<nn::Conv2d<3, Kernel<3>>, true, MaxPool2d<3>, Shape<19, 29, 1>>();
  composite_follows<nn::Conv2d<9, Kernel<2>, Stride<2>>, true, MaxPool2d<2>, Shape<16, 70, 2>>();
  composite_follows<nn::Conv2d<4, Kernel<3>>, true, MaxPool2d<3, Stride<1>>, Shape<9, 11, 2>>();
  composite_follows<nn::Conv2d<16, Kernel<3>>, true, MaxPool2d<2, Stride<3>>, Shape<12, 11, 3>>();  // by hand: with gaps
}
TEST_CASE("Conv2d, MaxPool2d without ReLU; Conv2d, Relu without pooling") {
  composite_follows<nn::Conv2d<20, Kernel<3>>, false, MaxPool2d<2>, Shape<11, 9, 7>>();
  composite_follows<nn::Conv2d<6, Kernel<5>, Padding<2>>, false, MaxPool2d<2>, Shape<12, 34, 1>>();
  composite_follows<nn::Conv2d<16, Kernel<3>, Padding<1>>, true, NoPool, Shape<8, 9, 16>>();
  composite_follows<nn::Conv2d<3, Kernel<5>>, true, NoPool, Shape<12, 37, 1>>();
}
TEST_CASE("Conv2d, Relu, MaxPool2d of many channels: float and double may take other kernels") {
  composite_follows<nn::Conv2d<12, Kernel<3>>, true, MaxPool2d<2>, Shape<6, 7, 70>>();
  composite_follows<nn::Conv2d<48, Kernel<1>>, true, NoPool, Shape<5, 3, 40>>();
}
TEST_CASE("Conv2d, Relu, MaxPool2d where no direct kernel fits") {
  composite_follows<nn::Conv2d<8, Kernel<3>, Dilation<2>>, true, MaxPool2d<2>, Shape<12, 11, 4>>();
  composite_follows<nn::Conv2d<8, Kernel<3>, Groups<4>, Padding<1>>, true, NoPool, Shape<7, 6, 4>>();
  composite_follows<nn::Conv2d<6, Kernel<3>, Groups<2>>, true, MaxPool2d<2, Stride<3>>, Shape<9, 10, 4>>();
}
TEST_CASE("Conv2d, Relu, MaxPool2d: the gradient is the derivative") {
  LayerHarness<ConvReluPool<nn::Conv2d<6, Kernel<3>, Padding<1>>, true, MaxPool2d<2>>, Shape<8, 10, 1>>(2).check_gradients(
      1e-6, 150, 1e-7);
  LayerHarness<ConvReluPool<nn::Conv2d<8, Kernel<3>>, true, MaxPool2d<3, Stride<2>>>, Shape<9, 9, 4>>(2).check_gradients(
      1e-6, 150, 1e-7);
  LayerHarness<ConvReluPool<nn::Conv2d<5, Kernel<3>, Stride<2>>, true, NoPool>, Shape<9, 9, 4>>(2).check_gradients(1e-6, 150,
                                                                                                                   1e-7);
}
TEST_CASE("Conv2d, Relu, MaxPool2d agree with PyTorch") {
  using namespace fixtures;
  matches_pytorch<ConvReluPool<nn::Conv2d<6, Kernel<3>, Padding<1>>, true, NoPool>, Shape<6, 5, 4>>(
      conv_relu_y, conv_relu_dx, conv_relu_dweight, conv_relu_dbias);
  matches_pytorch<ConvReluPool<First, true, MaxPool2d<2>>, Shape<10, 8, 1>>(conv_relu_pool_y, conv_relu_pool_dx,
                                                                            conv_relu_pool_dweight, conv_relu_pool_dbias);
  matches_pytorch<ConvReluPool<nn::Conv2d<8, Kernel<3>>, true, MaxPool2d<3, Stride<2>, Padding<1>>>, Shape<9, 9, 5>>(
      conv_pool_relu_y, conv_pool_relu_dx, conv_pool_relu_dweight, conv_pool_relu_dbias);
}
TEST_CASE("A NaN in the weights is seen in the output") {
  LayerHarness<ConvReluPool<First, true, MaxPool2d<2>>, Shape<28, 28, 1>, float> a(1);
  a.set_parameter(0, [](long) { return std::nan(""); });
  a.forward();
  CHECK(std::isnan(a.y_at(0, 0)));
  LayerHarness<ConvReluPool<Second, true, MaxPool2d<2>>, Shape<14, 14, 6>, float> b(1);
  b.set_parameter(1, [](long) { return std::nan(""); });
  b.forward();
  CHECK(std::isnan(b.y_at(0, 399)));
}
