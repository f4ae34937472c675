// SPDX-License-Identifier: Apache-2.0
// A layer on each position of a sequence: the bits of the same layer on as many samples, and finite differences.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include <skein/nn/check_gradients.hpp>
#include <skein/nn/each_position.hpp>
#include <skein/nn/executor.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/tanh.hpp>

#include "../support/larger.hpp"
#include "../support/layer_harness.hpp"
#include "../support/own_layers.hpp"

namespace sk = skein;
namespace nn = skein::nn;

namespace {
/// N outputs of C values at each of T positions, where rows have gaps or not.
template <int N, int T, int C, class S, class... Options> void is_the_layer_alone(long batch, int workers) {
  INFO(N << " of " << C << " values, " << T << " positions, " << batch << " samples, " << workers << " workers");
  using Linear = nn::Linear<N, Options...>;
  support::LayerHarness<nn::EachPosition<Linear>, sk::Shape<T, C>, S> h(batch, workers);
  support::LayerHarness<Linear, sk::Shape<C>, S> alone(batch * T, workers);
  alone.set_x([&](long b, long i) { return h.x_at(b / T, b % T * C + i); });
  alone.set_dy([&](long b, long i) { return h.dy_at(b / T, b % T * N + i); });
  h.forward(), h.backward();
  alone.forward(), alone.backward();
  long wrong = 0;
  for (long b = 0; b < batch * T; ++b) {
    for (long i = 0; i < N; ++i) wrong += h.y_at(b / T, b % T * N + i) != alone.y_at(b, i);
    for (long i = 0; i < C; ++i) wrong += h.dx_at(b / T, b % T * C + i) != alone.dx_at(b, i);
  }
  CHECK(wrong == 0);
  for (long i = 0; i < h.gradients().size(); ++i) CHECK(h.gradients()[i] == Approx(alone.gradients()[i]).margin(1e-5));
  CHECK(h.worst_gap() == 0);
  CHECK(h.intact());
}
/// N outputs, tanh(x W + b), in plain loops: it reads x and y in backward, and the first half of that adds the bias gradient.
template <int N> struct Bent {
  static constexpr sk::LayerInfo describe(sk::Extents in) {
    const int k = in.last();
    sk::LayerInfo info{.output = {1, {N}}, .saves_input = true, .saves_output = true};
    info.parameters[0] = {"weight", {2, {k, N}}, sk::Init::fan_in_uniform, k, N};
    info.parameters[1] = {"bias", {1, {N}}, sk::Init::zeros, k, N};
    return info;
  }
  template <class In, class Frame> static void forward(Frame& f) {
    each<In>(f, [&](long y, long j, long) { f.y[y] = f.parameters[bias<In> + j]; });
    each_pair<In>(f, [&](long x, long y, long w) { f.y[y] += f.x[x] * f.parameters[w]; });
    each<In>(f, [&](long y, long, long) { f.y[y] = std::tanh(f.y[y]); });
  }
  template <class In, class Frame> static void backward(Frame& f) {
    backward_input<In>(f);
    backward_parameters<In>(f);
  }
  template <class In, class Frame> static void backward_input(Frame& f) {
    each<In>(f, [&](long y, long j, long) { f.gradients[bias<In> + j] += slope(f, y); });
    if (!f.dx) return;
    std::fill_n(f.dx, f.batch * sk::row_pitch(In::count), 0);
    each_pair<In>(f, [&](long x, long y, long w) { f.dx[x] += slope(f, y) * f.parameters[w]; });
  }
  template <class In, class Frame> static void backward_parameters(Frame& f) {
    each_pair<In>(f, [&](long x, long y, long w) { f.gradients[w] += slope(f, y) * f.x[x]; });
  }

 private:
  template <class In> static constexpr long bias = In::count* sk::row_pitch(N);
  static auto slope(const auto& f, long y) { return f.dy[y] * (1 - f.y[y] * f.y[y]); }
  template <class In> static void each(const auto& f, auto body) {
    for (long n = 0; n < f.batch; ++n)
      for (long j = 0; j < N; ++j) body(n * sk::row_pitch(N) + j, j, n);
  }
  template <class In> static void each_pair(const auto& f, auto body) {
    each<In>(f, [&](long y, long j, long n) {
      for (long i = 0; i < In::count; ++i) body(n * sk::row_pitch(In::count) + i, y, i * sk::row_pitch(N) + j);
    });
  }
};
}  // namespace

TEST_CASE("Linear on each position is Linear on as many samples", "[nn]") {
  is_the_layer_alone<5, 6, 7, double>(3, 1);
  is_the_layer_alone<5, 6, 7, float>(5, 2);
  is_the_layer_alone<16, 3, 32, float>(4, 1);  // rows without gaps: nothing is copied
  is_the_layer_alone<65, 4, 16, float>(4, 3);  // the outputs are
  is_the_layer_alone<16, 4, 65, float>(4, 1);  // the inputs are
  is_the_layer_alone<4, 5, 3, double, sk::NoBias>(2, 1);
}

TEST_CASE("A wide Linear on each position has one gradient, whatever the workers", "[nn]") {
  using Model = sk::Model<nn::Sequential<nn::EachPosition<nn::Linear<256>>, nn::Tanh, nn::EachPosition<nn::Linear<4>>>,
                          sk::Shape<2, 256>, sk::Cpu, double>;
  STATIC_REQUIRE(nn::Linear<256>::needs<sk::Cpu>({1, {256}}).splits_gradients);
  std::vector<double> x(5 * 512), y(5 * 8), first;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = sk::random_uniform(1, 0, i) - 0.5;
  for (const int threads : {1, 2, 3}) {
    Model model{sk::Seed{1}};
    sk::Executor executor{model, nn::Mse{}, {.capacity = 5, .execution = sk::Execution::layer_wise, .threads = threads}};
    executor.forward_backward(sk::BatchView<double>{x.data(), 512, nullptr, y.data(), 8, 5});
    const std::vector<double> gradient(model.gradients().begin(), model.gradients().end());
    if (threads == 1) first = gradient;
    double apart = 0;
    for (std::size_t i = 0; i < first.size(); ++i) apart = support::larger(apart, gradient[i] - first[i]);
    INFO(threads << " threads");
    CHECK(apart < 1e-13);
  }
}

TEST_CASE("Linear on each position has the gradient of finite differences", "[nn]") {
  support::LayerHarness<nn::EachPosition<nn::Linear<5>>, sk::Shape<3, 7>, double>(3).check_gradients();
  using Net =
      nn::Sequential<own_layers::Embedding<11, 3>, nn::EachPosition<nn::Linear<6>>, nn::Tanh, nn::EachPosition<nn::Linear<5>>>;
  const auto check = sk::check_gradients<Net, sk::Tokens<4>>();
  INFO(check.text());
  CHECK(check);
  CHECK(nn::analyze<Net>(sk::Tokens<4>::extents).output == sk::Extents{2, {4, 5}});
}

TEST_CASE("A layer of one's own on each position has the gradient of finite differences, with gaps and without", "[nn]") {
  support::LayerHarness<nn::EachPosition<Bent<5>>, sk::Shape<3, 7>, double>(3).check_gradients();
  support::LayerHarness<nn::EachPosition<Bent<16>>, sk::Shape<3, 7>, double>(3).check_gradients();
  support::LayerHarness<nn::EachPosition<Bent<5>>, sk::Shape<3, 16>, double>(3).check_gradients();
  support::LayerHarness<nn::EachPosition<Bent<16>>, sk::Shape<3, 16>, double>(3).check_gradients();
  const auto check = sk::check_gradients<nn::Sequential<nn::EachPosition<Bent<5>>, nn::EachPosition<Bent<3>>>, sk::Shape<2, 7>>();
  INFO(check.text());
  CHECK(check);
}

TEST_CASE("EachPosition takes sequences", "[nn]") {
  STATIC_REQUIRE(nn::EachPosition<nn::Linear<5>>::describe({1, {7}}).fault == nn::Fault::wants_sequence);
  STATIC_REQUIRE(nn::EachPosition<nn::Linear<5>>::describe({3, {2, 3, 7}}).fault == nn::Fault::wants_sequence);
  STATIC_REQUIRE(nn::EachPosition<nn::Linear<5>>::describe({2, {3, 7}}).parameter_count() == 40);
}
