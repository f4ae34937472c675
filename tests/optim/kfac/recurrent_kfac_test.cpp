// SPDX-License-Identifier: Apache-2.0
// Kfac's factors of recurrent cells: beside the dense Fisher matrix of one step, where they are exact; beside a plain cell with
// finite differences over several steps; of a Gru, which has two blocks, beside a plain cell and a direct solve; in trainings.
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

#include "../../support/larger.hpp"
#include "../../support/naive_curvature.hpp"

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
      most = support::larger(most, f.a[at(i)] * f.g[at(j)] - dense);
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

/// A Gru over T steps of N samples, in loops; `shift` is added to what its gates get of the input (N, T, 3 H), and to the state's
/// part of the third (N, T, H). The mean square error of all states.
template <class... Options> struct PlainGru {
  static constexpr long N = 5, T = 4, C = 3, H = 2, G = 3 * H, pitch = sk::row_pitch(G);
  static constexpr bool reversed = sizeof...(Options) > 0;
  using Model = Net<nn::Sequential<nn::Gru<H, Options...>>, sk::Shape<T, C>>;
  Values weights;
  Samples<Model> data{N};
  PlainGru() {
    const Model model{sk::Seed{3}};
    weights.assign(model.parameters().begin(), model.parameters().end());
  }
  static long place(long t) { return reversed ? T - 1 - t : t; }
  static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
  double row_sum(const double* values, long n, long first_row, long bias_row, long j) const {
    double sum = weights[at(bias_row * pitch + j)];
    for (long i = 0; i < n; ++i) sum += values[i] * weights[at((first_row + i) * pitch + j)];
    return sum;
  }
  /// before (N, T, H): the state that each step reads.
  double loss(const Values& shift, Values& before) const {
    before.assign(at(N * T * H), 0);
    double sum = 0;
    for (long n = 0; n < N; ++n) {
      double h[H] = {};
      for (long t = 0; t < T; ++t) {
        double next[H];
        const double* const x = &data.x[at((n * T + place(t)) * C)];
        const auto of_input = [&](long j) { return row_sum(x, C, 0, C + H, j) + shift[at((n * T + t) * G + j)]; };
        const auto of_state = [&](long j) { return row_sum(h, H, C, C + H + 1, j); };
        for (long j = 0; j < H; ++j) {
          before[at((n * T + t) * H + j)] = h[j];
          const double r = sigmoid(of_input(j) + of_state(j)), z = sigmoid(of_input(H + j) + of_state(H + j)),
                       q = of_state(2 * H + j) + shift[at(N * T * G + (n * T + t) * H + j)],
                       m = std::tanh(of_input(2 * H + j) + r * q);
          next[j] = (1 - z) * m + z * h[j];
          const double d = next[j] - data.y[at((n * T + place(t)) * H + j)];
          sum += d * d;
        }
        std::copy_n(next, H, h);
      }
    }
    return sum / static_cast<double>(N * T * H);
  }
  /// A, G, A, G: of the input and of the state. Mean of A over steps, sum of G; both the mean over samples.
  std::vector<Values> factors() const {
    Values shift(at(N * T * (G + H))), gradient(shift.size()), before, unused;
    for (std::size_t i = 0; i < shift.size(); ++i) {
      shift[i] = 1e-5;
      const double above = loss(shift, unused);
      shift[i] = -1e-5;
      gradient[i] = (above - loss(shift, unused)) / 2e-5;
      shift[i] = 0;
    }
    loss(shift, before);
    std::vector<Values> f{Values(at((C + 1) * (C + 1))), Values(at(G * G)), Values(at((H + 1) * (H + 1))), Values(at(G * G))};
    const auto add = [](Values& to, const Values& row, double factor) {
      for (std::size_t i = 0; i < to.size(); ++i) to[i] += factor * row[i / row.size()] * row[i % row.size()];
    };
    for (long n = 0; n < N; ++n)
      for (long t = 0; t < T; ++t) {
        const long step = n * T + t;
        Values x(at(C + 1), 1), h(at(H + 1), 1), gates(at(G));
        std::copy_n(&data.x[at((n * T + place(t)) * C)], C, x.begin());
        std::copy_n(&before[at(step * H)], H, h.begin());
        std::copy_n(&gradient[at(step * G)], G, gates.begin());
        add(f[0], x, 1.0 / (N * T));
        add(f[1], gates, 1.0 / N);
        add(f[2], h, 1.0 / (N * T));
        std::copy_n(&gradient[at(N * T * G + step * H)], H, gates.begin() + 2 * H);
        add(f[3], gates, 1.0 / N);
      }
    return f;
  }
  /// Row i of the block of the input, or of the state, among the weights.
  static long row(bool of_state, long i) { return of_state ? (i < H ? C + i : C + H + 1) : i < C ? i : C + H; }
};
/// After one step with factors of that step alone: the factors are the plain ones, and the step is the direct solve's.
template <class Plain> void gru_agrees(optim::KfacInverse how, int threads) {
  const Plain plain;
  const std::vector<Values> expected = plain.factors();
  typename Plain::Model model{sk::Seed{3}}, same{sk::Seed{3}};
  const double damping = 0.01;
  optim::Kfac kfac{.damping = damping, .factor_every = 1, .inverse_every = 1, .factor_decay = 0, .kl_clip = 0, .inverse = how};
  sk::train::TrainStep step{model, nn::Mse{}, optim::chain(kfac, optim::Sgd{.lr = 1}), sk::parallel::SingleProcess{}};
  step.reserve({.capacity = Plain::N, .threads = threads});
  step.step(plain.data.view());
  sk::Executor executor{same, nn::Mse{}, {.capacity = Plain::N, .threads = 1}};
  executor.forward_backward(plain.data.view());
  const bool eigen = how == optim::KfacInverse::eigen;
  REQUIRE(step.curvature().layers() == 2);
  for (const bool of_state : {false, true}) {
    const auto a = step.curvature().factor_a(of_state), g = step.curvature().factor_g(of_state);
    const Values &of_a = expected[of_state ? 2 : 0], &of_g = expected[of_state ? 3 : 1];
    REQUIRE(a.size() == of_a.size());
    REQUIRE(g.size() == of_g.size());
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(of_a[i]).margin(1e-12).epsilon(0));
    for (std::size_t i = 0; i < g.size(); ++i) CHECK(g[i] == Approx(of_g[i]).margin(1e-9).epsilon(0));
    const long rows = (of_state ? Plain::H : Plain::C) + 1;
    Values gradient, moved;
    for (long i = 0; i < rows * Plain::G; ++i) {
      const std::size_t k = at(Plain::row(of_state, i / Plain::G) * Plain::pitch + i % Plain::G);
      gradient.push_back(same.gradients()[k]);
      moved.push_back(plain.weights[k] - std::as_const(model).parameters()[k]);
    }
    const Values solved = test::divide_naively({eigen ? 0 : damping, eigen ? 0 : damping, eigen ? damping : 0},
                                               {a.begin(), a.end()}, {g.begin(), g.end()}, gradient);
    for (std::size_t i = 0; i < solved.size(); ++i) CHECK(moved[i] == Approx(solved[i]).epsilon(1e-9).margin(1e-12));
  }
}

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
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(got.a[i] == Approx(a[i]).margin(1e-12).epsilon(0));
  for (std::size_t i = 0; i < g.size(); ++i) CHECK(got.g[i] == Approx(g[i]).margin(1e-9).epsilon(0));
  const auto one = factors_of<PlainRnn::Model>(7, 1), three = factors_of<PlainRnn::Model>(7, 3);
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(three.a[i] == Approx(one.a[i]).margin(1e-14).epsilon(0));
  for (std::size_t i = 0; i < g.size(); ++i) CHECK(three.g[i] == Approx(one.g[i]).margin(1e-14).epsilon(0));
}

TEST_CASE("A Gru has the factors of its input and of its state, and its step is the direct solve's", "[optim]") {
  for (const auto how : {optim::KfacInverse::eigen, optim::KfacInverse::cholesky})
    for (const int threads : {1, 3}) {
      gru_agrees<PlainGru<>>(how, threads);
      gru_agrees<PlainGru<sk::Reversed>>(how, threads);
    }
}

TEST_CASE("Kfac trains recurrent networks alike on any number of threads", "[optim]") {
  const auto alike = [&]<class Cell>(Cell) {
    for (const int threads : {2, 3}) {
      const Values one = trained<Cell>(1), many = trained<Cell>(threads);
      for (std::size_t i = 0; i < one.size(); ++i) CHECK(many[i] == Approx(one[i]).margin(1e-8).epsilon(0));
    }
  };
  alike(nn::Lstm<5>{});
  alike(nn::Gru<5>{});
  trained<nn::Rnn<5>>(2);
}

TEST_CASE("Kfac leaves a Gru of which one bias is frozen as it is in that block alone", "[optim]") {
  using Model = Net<nn::Sequential<nn::Gru<2>>, sk::Shape<4, 3>>;
  const Samples<Model> data(5);
  const auto moved = [&](const auto& optimizer) {
    Model model{sk::Seed{3}};
    const Values before{std::as_const(model).parameters().begin(), std::as_const(model).parameters().end()};
    sk::train::TrainStep step{model, nn::Mse{}, optimizer, sk::parallel::SingleProcess{}};
    step.reserve({.capacity = 5, .threads = 1});
    step.step(data.view());
    Values d = before;
    for (std::size_t i = 0; i < d.size(); ++i) d[i] -= std::as_const(model).parameters()[i];
    return d;
  };
  const optim::Kfac kfac{.factor_every = 1, .inverse_every = 1, .factor_decay = 0, .kl_clip = 0};
  auto frozen = optim::chain(kfac, optim::Sgd{.lr = 1});
  frozen.groups = {optim::frozen("0.bias_hh")};
  const Values plain = moved(optim::Sgd{.lr = 1}), whole = moved(optim::chain(kfac, optim::Sgd{.lr = 1})), part = moved(frozen);
  constexpr long pitch = sk::row_pitch(6);
  for (long row = 0; row < 7; ++row)  // three of the input, two of the state, both biases
    for (long j = 0; j < 6; ++j) {
      const std::size_t i = at(row * pitch + j);
      const bool of_state = row == 3 || row == 4;
      CHECK(part[i] == Approx(row == 6 ? 0 : of_state ? plain[i] : whole[i]).epsilon(1e-12));
      if (of_state) CHECK(std::abs(plain[i] - whole[i]) > 1e-3 * std::abs(plain[i]));
    }
}
