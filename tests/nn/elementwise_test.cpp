// SPDX-License-Identifier: Apache-2.0
// Elementwise and the activations: naive twins, finite differences, values at the edges.
#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

#include <skein/nn/check.hpp>
#include <skein/nn/gelu.hpp>
#include <skein/nn/identity.hpp>
#include <skein/nn/leaky_relu.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/sigmoid.hpp>
#include <skein/nn/tanh.hpp>

#include "../support/close.hpp"
#include "../support/layer_harness.hpp"

namespace sk = skein;
namespace nn = skein::nn;
using support::LayerHarness;

namespace {

// [elementwise-swish]
struct Swish {
  template <class T> constexpr T operator()(T x) const { return x / (T(1) + exp(-x)); }
};
// [elementwise-swish]
struct Kink {  // mixes plain numbers in, branches, has no derivative_from_output
  template <class T> constexpr T operator()(T x) const { return where(x < -1, 0.5 * x, max(x * x, 2 * x) + 1); }
};
using GeluTanh = nn::BasicGelu<nn::TanhForm>;

double kink(double x) { return x < -1 ? 0.5 * x : std::max(x * x, 2 * x) + 1; }
double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
double gelu_tanh(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

template <class L, class In, class S> void twin(double (*f)(double), long batch, int workers) {
  LayerHarness<L, In, S> h(batch, workers);
  h.set_x([](long b, long i) { return 4 * support::wave(b * 31 + i, 0.7); });
  h.forward();
  h.backward();
  long wrong = 0;
  for (long b = 0; b < batch; ++b)
    for (long i = 0; i < In::count; ++i) {
      const double x = static_cast<double>(h.x_at(b, i)), e = 1e-5, derivative = (f(x + e) - f(x - e)) / (2 * e);
      wrong += !support::close(h.y_at(b, i), static_cast<S>(f(x)), support::Roundings::sum, 1);
      wrong += !(std::abs(static_cast<double>(h.dx_at(b, i)) - derivative * static_cast<double>(h.dy_at(b, i))) <
                 (std::is_same_v<S, float> ? 4e-6 : 1e-9));
    }
  INFO("batch " << batch << " workers " << workers);
  CHECK(wrong == 0);
  CHECK(h.intact());
}
template <class L> void twins(double (*f)(double)) {
  for (long batch : {0L, 1L, 5L, 128L}) {
    twin<L, sk::Shape<17>, float>(f, batch, 1);
    twin<L, sk::Shape<3>, double>(f, batch, 1);
  }
  twin<L, sk::Shape<2, 3, 7>, float>(f, 5, 2);
  twin<L, sk::Shape<7>, float>(f, 5, 3);
}

}  // namespace

static_assert((sk::assert_layer<nn::Elementwise<Swish>, sk::Shape<3, 4, 5>>(), true));
static_assert(nn::Elementwise<Swish>::describe({1, {7}}).saves_input && !nn::Elementwise<Swish>::describe({1, {7}}).saves_output);
static_assert(nn::Relu::describe({1, {7}}).saves_output && !nn::Relu::describe({1, {7}}).saves_input);
static_assert(nn::Gelu::describe({3, {4, 5, 6}}).output == sk::Extents{3, {4, 5, 6}});
static_assert(nn::Identity::describe({1, {7}}).aliases_input);
static_assert(nn::ElementwiseFunction<Swish> && !nn::ElementwiseFunction<int>);
static_assert(nn::ElementwiseLayer<nn::LeakyRelu<>> && !nn::ElementwiseLayer<nn::Identity>);

TEST_CASE("Elementwise: the user's functions", "[elementwise]") {
  twins<nn::Elementwise<Swish>>([](double x) { return x / (1 + std::exp(-x)); });
  twins<nn::Elementwise<Kink>>(kink);
}
TEST_CASE("Elementwise: the built-in activations", "[elementwise]") {
  twins<nn::Relu>([](double x) { return std::max(x, 0.0); });
  twins<nn::LeakyRelu<>>([](double x) { return x > 0 ? x : x / 100; });
  twins<nn::LeakyRelu<sk::Slope<1, 5>>>([](double x) { return x > 0 ? x : x / 5; });
  twins<nn::Sigmoid>([](double x) { return 1 / (1 + std::exp(-x)); });
  twins<nn::Tanh>([](double x) { return std::tanh(x); });
  twins<nn::Gelu>(gelu);
  twins<GeluTanh>(gelu_tanh);
}
TEMPLATE_TEST_CASE("Elementwise: gradients are those of finite differences", "[elementwise]", nn::Relu, nn::LeakyRelu<>,
                   nn::Sigmoid, nn::Tanh, nn::Gelu, GeluTanh, nn::Elementwise<Swish>) {
  LayerHarness<TestType, sk::Shape<17>> h(3);
  h.check_gradients();
}

TEST_CASE("Elementwise: values at the edges", "[elementwise]") {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const auto at = [&]<class L>(L, double x) {
    LayerHarness<L, sk::Shape<5>> h(1);
    h.set_x([&](long, long i) { return i == 2 ? x : 0.5; });
    h.forward();
    return h.y_at(0, 2);
  };
  CHECK(at(nn::Relu{}, infinity) == infinity);
  CHECK(at(nn::Relu{}, -infinity) == 0);
  CHECK(std::isnan(at(nn::Relu{}, nan)));
  CHECK(at(nn::Sigmoid{}, 1000) == 1);
  CHECK(at(nn::Sigmoid{}, -1000) == 0);
  CHECK(at(nn::Tanh{}, 1000) == 1);
  CHECK(at(nn::Gelu{}, -100) == 0);
  LayerHarness<nn::Relu, sk::Shape<3>> h(1);  // the derivative at zero is zero, as in PyTorch
  h.set_x([](long, long) { return 0; });
  h.forward();
  h.backward();
  CHECK(h.dx_at(0, 1) == 0);
}

TEST_CASE("Elementwise: options change something", "[elementwise]") {
  LayerHarness<nn::Gelu, sk::Shape<5>> exact(1);
  LayerHarness<GeluTanh, sk::Shape<5>> other(1);
  exact.forward();
  other.forward();
  CHECK(exact.y_at(0, 0) != other.y_at(0, 0));
}
