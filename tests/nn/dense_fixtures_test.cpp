// SPDX-License-Identifier: Apache-2.0
// Linear, the activations, the softmaxes, Slice and Reshape give PyTorch's values and gradients (tests/fixtures/make_dense.py).
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include <skein/nn/gelu.hpp>
#include <skein/nn/leaky_relu.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/log_softmax.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/reshape.hpp>
#include <skein/nn/sigmoid.hpp>
#include <skein/nn/slice.hpp>
#include <skein/nn/softmax.hpp>
#include <skein/nn/tanh.hpp>

#include "../fixtures/dense.hpp"
#include "../support/larger.hpp"
#include "../support/layer_harness.hpp"

namespace sk = skein;
namespace nn = skein::nn;
namespace torch = fixtures::dense;
using support::LayerHarness;
using support::wave;

namespace {

struct Silu {
  template <class T> constexpr T operator()(T x) const { return x / (T(1) + exp(-x)); }
};

/// The largest distance, relative to the largest value.
template <class At> double distance(const std::vector<double>& want, At at) {
  double worst = 0, scale = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    worst = support::larger(worst, want[i] - static_cast<double>(at(static_cast<long>(i))));
    scale = std::max(scale, std::abs(want[i]));
  }
  return worst / scale;
}
/// The inputs are numbers that a float holds.
double single(double x) { return static_cast<double>(static_cast<float>(x)); }
void set_dy(auto& h) {
  h.set_dy([](long b, long i) { return single(wave(b * 57 + i, 1.3, 0.1)); });
}
template <class S> constexpr double allowed = std::is_same_v<S, float> ? 1e-6 : 1e-13;

template <class L, class S> void activation(const char* name, const std::vector<double>& y, const std::vector<double>& dx) {
  LayerHarness<L, sk::Shape<17>, S> h(5);
  h.set_x([](long b, long i) { return single(3 * wave(b * 131 + i, 0.7, 0.3)); });
  set_dy(h);
  h.forward();
  h.backward();
  INFO(name << " of " << sizeof(S) << " bytes");
  CHECK(distance(y, [&](long i) { return h.y_at(i / 17, i % 17); }) <= allowed<S>);
  CHECK(distance(dx, [&](long i) { return h.dx_at(i / 17, i % 17); }) <= allowed<S>);
}
template <class L> void both(const char* name, const std::vector<double>& y, const std::vector<double>& dx) {
  activation<L, float>(name, y, dx);
  activation<L, double>(name, y, dx);
}

}  // namespace

TEMPLATE_TEST_CASE("PyTorch: Linear", "[fixtures]", float, double) {
  LayerHarness<nn::Linear<10>, sk::Shape<17>, TestType> h(5);
  h.set_parameter(0, [](long i) { return single(0.5 * wave(i, 0.9, 0.2)); });
  h.set_parameter(1, [](long i) { return single(wave(i, 1.7, 0.5)); });
  h.set_x([](long b, long i) { return single(wave(b * 131 + i, 0.7, 0.3)); });
  set_dy(h);
  h.forward();
  h.backward();
  CHECK(distance(torch::linear_y, [&](long i) { return h.y_at(i / 10, i % 10); }) <= allowed<TestType>);
  CHECK(distance(torch::linear_dx, [&](long i) { return h.dx_at(i / 17, i % 17); }) <= allowed<TestType>);
  CHECK(distance(torch::linear_dw, [&](long i) { return h.gradient_at(0, i); }) <= allowed<TestType>);
  CHECK(distance(torch::linear_db, [&](long i) { return h.gradient_at(1, i); }) <= allowed<TestType>);
}

TEST_CASE("PyTorch: activations", "[fixtures]") {
  both<nn::Relu>("relu", torch::relu_y, torch::relu_dx);
  both<nn::LeakyRelu<>>("leaky relu", torch::leaky_relu_y, torch::leaky_relu_dx);
  both<nn::Gelu>("gelu", torch::gelu_y, torch::gelu_dx);
  both<nn::BasicGelu<nn::TanhForm>>("gelu, tanh", torch::gelu_tanh_y, torch::gelu_tanh_dx);
  both<nn::Sigmoid>("sigmoid", torch::sigmoid_y, torch::sigmoid_dx);
  both<nn::Tanh>("tanh", torch::tanh_y, torch::tanh_dx);
  both<nn::Elementwise<Silu>>("silu", torch::silu_y, torch::silu_dx);
  both<nn::Softmax>("softmax", torch::softmax_y, torch::softmax_dx);
  both<nn::LogSoftmax>("log-softmax", torch::log_softmax_y, torch::log_softmax_dx);
}

namespace {
/// What moves values only gives the same ones to the bit.
template <class L, class In, class S> void moves(const std::vector<double>& y, const std::vector<double>& dx) {
  LayerHarness<L, In, S> h(2);
  h.set_x([](long b, long i) { return single(wave(b * 131 + i, 0.7, 0.3)); });
  set_dy(h);
  h.forward();
  h.backward();
  const long outputs = static_cast<long>(y.size()) / 2;
  REQUIRE(L::describe(In::extents).output.count() == outputs);
  REQUIRE(In::count == static_cast<long>(dx.size()) / 2);
  CHECK(distance(y, [&](long i) { return h.y_at(i / outputs, i % outputs); }) <= 0);
  CHECK(distance(dx, [&](long i) { return h.dx_at(i / In::count, i % In::count); }) <= 0);
}
}  // namespace

TEMPLATE_TEST_CASE("PyTorch: a slice of the last extent, a reshape", "[fixtures]", float, double) {
  moves<nn::Slice<2, 5>, sk::Shape<3, 4, 7>, TestType>(torch::slice_y, torch::slice_dx);
  moves<nn::Reshape<12, 7>, sk::Shape<84>, TestType>(torch::reshape_y, torch::reshape_dx);
}
