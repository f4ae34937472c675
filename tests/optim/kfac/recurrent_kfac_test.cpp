// SPDX-License-Identifier: Apache-2.0
// Kfac's factors of recurrent cells: beside the dense Fisher matrix of one step, where they are exact; beside a plain cell with
// finite differences over several steps; in trainings.
#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

#include <skein/nn/flatten.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/recurrent.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/optim/kfac/kfac.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/train/train_step.hpp>

namespace sk = skein;
namespace nn = skein::nn;
namespace optim = skein::optim;

namespace {
using Values = std::vector<double>;
template <class Network, class In> using Net = sk::Model<Network, In, sk::Cpu, double>;

std::size_t at(long i) { return static_cast<std::size_t>(i); }
double wave(long i, double a) { return std::sin(a * static_cast<double>(i + 1) + 0.3); }

/// Samples of a model and targets of all its outputs.
template <class Model> struct Samples {
  static constexpr long in = sk::sample_pitch(Model::input::extents), out = sk::sample_pitch(Model::output_extents);
  long count;
  Values x, y;
  explicit Samples(long n) : count(n), x(at(n * in)), y(at(n * out)) {
    for (long i = 0; i < n * in; ++i) x[at(i)] = wave(i, 0.7);
    for (long i = 0; i < n * out; ++i) y[at(i)] = wave(i, 1.9);
  }
  sk::BatchView<double> view() const { return {x.data(), in, nullptr, y.data(), out, count}; }
};

template <class Model> struct Factors { Values a, g, gradient; };
/// Of the first layer, after one step with factors of that step alone; and the gradient that it has taken.
template <class Model> Factors<Model> factors_of(long samples, int threads) {
  const Samples<Model> data(samples);
  Model model{sk::Seed{3}}, same{sk::Seed{3}};
  sk::train::TrainStep step{
      model, nn::Mse{},
      optim::chain(optim::Kfac{.factor_every = 1, .inverse_every = 1, .factor_decay = 0}, optim::Sgd{.lr = 0.1f}),
      sk::parallel::SingleProcess{}};
  step.reserve({.capacity = samples, .threads = threads});
  step.step(data.view());
  sk::Executor executor{same, nn::Mse{}, {.capacity = samples, .threads = 1}};
  executor.forward_backward(data.view());
  const auto a = step.curvature().factor_a(0), g = step.curvature().factor_g(0);
  return {{a.begin(), a.end()}, {g.begin(), g.end()}, {same.gradients().begin(), same.gradients().end()}};
}

/// One sample of one step: the gradient is an outer product, so the Fisher matrix is the product of both factors.
template <class Cell, int Inputs, int H, int Gates> void is_the_dense_fisher() {
  const auto f = factors_of<Net<nn::Sequential<Cell>, sk::Shape<1, Inputs>>>(1, 1);
  constexpr long a = Inputs + H + 2, g = Gates * H, pitch = sk::row_pitch(g);
  REQUIRE(f.a.size() == at(a * a));
  REQUIRE(f.g.size() == at(g * g));
  double most = 0, large = 0;
  for (long i = 0; i < a * a; ++i)
    for (long j = 0; j < g * g; ++j) {
      const double dense = f.gradient[at(i / a * pitch + j / g)] * f.gradient[at(i % a * pitch + j % g)];
      most = std::max(most, std::abs(f.a[at(i)] * f.g[at(j)] - dense));
      large = std::max(large, std::abs(dense));
    }
  CHECK(large > 1e-4);
  CHECK(most < 1e-12 * large);
}

/// tanh(x W + b + h U + d) over T steps; `shift` is added before tanh, (T, H). The mean square error of all states.
struct PlainRnn {
  static constexpr long T = 4, C = 3, H = 2;
  using Model = Net<nn::Sequential<nn::Rnn<H>>, sk::Shape<T, C>>;
  Values weights;
  Samples<Model> data{1};
  PlainRnn() {
    const Model model{sk::Seed{3}};
    weights.assign(model.parameters().begin(), model.parameters().end());
  }
  /// states (T + 1, H), zeros first.
  double loss(const Values& shift, Values& states) const {
    constexpr long pitch = sk::row_pitch(H);
    states.assign(at((T + 1) * H), 0);
    double sum = 0;
    for (long t = 0; t < T; ++t)
      for (long j = 0; j < H; ++j) {
        double z = shift[at(t * H + j)] + weights[at((C + H) * pitch + j)] + weights[at((C + H + 1) * pitch + j)];
        for (long i = 0; i < C; ++i) z += data.x[at(t * C + i)] * weights[at(i * pitch + j)];
        for (long i = 0; i < H; ++i) z += states[at(t * H + i)] * weights[at((C + i) * pitch + j)];
        states[at((t + 1) * H + j)] = std::tanh(z);
        const double d = states[at((t + 1) * H + j)] - data.y[at(t * H + j)];
        sum += d * d;
      }
    return sum / static_cast<double>(T * H);
  }
};

template <class Cell> Values trained(int threads) {
  using Model = Net<nn::Sequential<Cell, nn::Flatten, nn::Linear<2>>, sk::Shape<6, 4>>;
  const Samples<Model> data(12);
  Model model{sk::Seed{3}};
  sk::train::TrainStep step{
      model, nn::Mse{}, optim::chain(optim::Kfac{.damping = 0.03, .factor_every = 1, .inverse_every = 2}, optim::Sgd{.lr = 0.2f}),
      sk::parallel::SingleProcess{}};
  step.reserve({.capacity = 12, .threads = threads});
  double first = 0, last = 0;
  for (int i = 0; i < 30; ++i) {
    last = step.step(data.view()).mean();
    if (i == 0) first = last;
  }
  CHECK(last < 0.9 * first);
  return {model.parameters().begin(), model.parameters().end()};
}
}  // namespace

TEST_CASE("Factors of a recurrent cell are the Fisher matrix of one sample and one step", "[optim]") {
  is_the_dense_fisher<nn::Rnn<3>, 2, 3, 1>();
  is_the_dense_fisher<nn::Lstm<2>, 3, 2, 4>();
  is_the_dense_fisher<nn::Lstm<2, sk::LastState>, 3, 2, 4>();
}

TEST_CASE("Over steps A is the mean of what the cell reads, G the sum of its gates' gradients", "[optim]") {
  const PlainRnn plain;
  constexpr long T = PlainRnn::T, C = PlainRnn::C, H = PlainRnn::H, n = C + H + 2;
  Values states, unused, shift(at(T * H)), gradients(at(T * H));
  plain.loss(shift, states);
  for (std::size_t i = 0; i < shift.size(); ++i) {
    const double h = 1e-5;
    shift[i] = h;
    const double above = plain.loss(shift, unused);
    shift[i] = -h;
    gradients[i] = (above - plain.loss(shift, unused)) / (2 * h);
    shift[i] = 0;
  }
  Values a(at(n * n)), g(at(H * H));
  for (long t = 0; t < T; ++t) {
    Values row(at(n), 1);
    for (long i = 0; i < C; ++i) row[at(i)] = plain.data.x[at(t * C + i)];
    for (long i = 0; i < H; ++i) row[at(C + i)] = states[at(t * H + i)];
    for (long i = 0; i < n * n; ++i) a[at(i)] += row[at(i / n)] * row[at(i % n)] / static_cast<double>(T);
    for (long i = 0; i < H * H; ++i) g[at(i)] += gradients[at(t * H + i / H)] * gradients[at(t * H + i % H)];
  }
  const auto got = factors_of<PlainRnn::Model>(1, 1);
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(got.a[i] == Approx(a[i]).margin(1e-12));
  for (std::size_t i = 0; i < g.size(); ++i) CHECK(got.g[i] == Approx(g[i]).margin(1e-9));
  const auto one = factors_of<PlainRnn::Model>(7, 1), three = factors_of<PlainRnn::Model>(7, 3);
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(three.a[i] == Approx(one.a[i]).margin(1e-14));
  for (std::size_t i = 0; i < g.size(); ++i) CHECK(three.g[i] == Approx(one.g[i]).margin(1e-14));
}

TEST_CASE("Kfac trains recurrent networks alike on any number of threads; of a Gru it divides the Linear layer alone",
          "[optim]") {
  for (const int threads : {2, 3}) {
    const Values one = trained<nn::Lstm<5>>(1), many = trained<nn::Lstm<5>>(threads);
    for (std::size_t i = 0; i < one.size(); ++i) CHECK(many[i] == Approx(one[i]).margin(1e-8));
  }
  trained<nn::Rnn<5>>(2);
  using WithGru = Net<nn::Sequential<nn::Gru<3, sk::LastState>, nn::Linear<2>>, sk::Shape<4, 3>>;
  CHECK(WithGru::program.ops()[0].kronecker_a == 0);
  CHECK(WithGru::program.ops()[1].kronecker_a == 4);
}
