// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <stdexcept>

#include <skein/nn/check.hpp>
#include <skein/nn/concat.hpp>
#include <skein/nn/dropout.hpp>
#include <skein/nn/each_position.hpp>
#include <skein/nn/executor.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/loss/own_loss.hpp>
#include <skein/nn/recurrent.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/state.hpp>

#include "fixtures/recurrent.hpp"
#include "support/apart.hpp"
#include "support/layer_harness.hpp"

namespace sk = skein;
namespace nn = skein::nn;
using skein::LastState;
using skein::Reversed;
using skein::Shape;
using skein::nn::Gru;
using skein::nn::Lstm;
using skein::nn::Rnn;
using support::LayerHarness;
using Values = std::vector<double>;

namespace {
/// A harness with the inputs of fixtures/make_recurrent.py.
template <class L, class Scalar> LayerHarness<L, Shape<4, 3>, Scalar> run(int workers) {
  LayerHarness<L, Shape<4, 3>, Scalar> h(2, workers);
  h.set_parameter(0, [](long i) { return 0.6 * support::wave(i, 0.5); });
  h.set_parameter(1, [](long i) { return 0.6 * support::wave(i, 0.9); });
  h.set_parameter(2, [](long i) { return 0.3 * support::wave(i, 1.1); });
  h.set_parameter(3, [](long i) { return 0.3 * support::wave(i, 1.7); });
  h.set_x([](long b, long i) { return support::wave(b * 12 + i, 0.7, 0.1); });
  h.set_dy([](long b, long i) { return support::wave(b * 20 + i, 1.3); });
  h.forward();
  return h;
}
template <class H> Values outputs(H&& h, long count) {
  Values v;
  for (long b = 0; b < 2; ++b)
    for (long i = 0; i < count; ++i) v.push_back(static_cast<double>(h.y_at(b, i)));
  return v;
}
template <class L, class Scalar> void follows(const Values& y, const Values& dx, const std::vector<Values>& gradients) {
  for (const int workers : {1, 2}) {
    auto h = run<L, Scalar>(workers);
    CHECK(test::first_apart<Scalar>(outputs(h, 20), y, 64) == -1);
    h.backward();
    Values got;
    for (long b = 0; b < 2; ++b)
      for (long i = 0; i < 12; ++i) got.push_back(static_cast<double>(h.dx_at(b, i)));
    CHECK(test::first_apart<Scalar>(got, dx, 64) == -1);
    for (int p = 0; p < 4; ++p) {
      got.clear();
      for (long i = 0; i < static_cast<long>(gradients[static_cast<std::size_t>(p)].size()); ++i)
        got.push_back(static_cast<double>(h.gradient_at(p, i)));
      CHECK(test::first_apart<Scalar>(got, gradients[static_cast<std::size_t>(p)], 64) == -1);
    }
    CHECK(h.worst_gap() == 0);
    CHECK(h.intact());
  }
}
}  // namespace

TEST_CASE("Recurrent layers say what they need, and refuse", "[nn]") {
  constexpr auto lstm = Lstm<128>::describe({2, {28, 28}});
  STATIC_REQUIRE(lstm.output == skein::Extents{2, {28, 128}});
  STATIC_REQUIRE(lstm.parameter_count() == 4 * 128 * (28 + 128 + 2));  // PyTorch's LSTM(28, 128)
  STATIC_REQUIRE(Gru<7, LastState>::describe({2, {5, 3}}).output == skein::Extents{1, {7}});
  STATIC_REQUIRE(Gru<7>::describe({2, {5, 3}}).parameter_count() == 3 * 7 * (3 + 7 + 2));
  STATIC_REQUIRE(Rnn<7>::describe({1, {15}}).fault == skein::nn::Fault::wants_sequence);
  STATIC_REQUIRE(skein::nn::Concat<Lstm<4>, Lstm<4, Reversed>>::layout({2, {5, 3}}).total.output == skein::Extents{2, {5, 8}});
}

TEST_CASE("Rnn, Lstm and Gru agree with PyTorch", "[nn]") {
  using namespace fixtures;
  const auto each = [](auto scalar) {
    using Scalar = decltype(scalar);
    follows<Rnn<5>, Scalar>(rnn_y, rnn_dx, {rnn_dweight_ih, rnn_dweight_hh, rnn_dbias_ih, rnn_dbias_hh});
    follows<Lstm<5>, Scalar>(lstm_y, lstm_dx, {lstm_dweight_ih, lstm_dweight_hh, lstm_dbias_ih, lstm_dbias_hh});
    follows<Gru<5>, Scalar>(gru_y, gru_dx, {gru_dweight_ih, gru_dweight_hh, gru_dbias_ih, gru_dbias_hh});
  };
  each(double{});
  each(float{});
  CHECK(test::first_apart<double>(outputs(run<Rnn<5, Reversed>, double>(1), 20), rnn_reversed_y, 64) == -1);
  CHECK(test::first_apart<double>(outputs(run<Lstm<5, Reversed>, double>(1), 20), lstm_reversed_y, 64) == -1);
  CHECK(test::first_apart<double>(outputs(run<Gru<5, Reversed>, double>(2), 20), gru_reversed_y, 64) == -1);
}

TEST_CASE("LastState is the last of the states, and behind Reversed that of the first step", "[nn]") {
  const Values all = outputs(run<Lstm<5>, double>(1), 20), last = outputs(run<Lstm<5, LastState>, double>(1), 5);
  const Values back = outputs(run<Gru<5, Reversed>, double>(1), 20),
               first = outputs(run<Gru<5, Reversed, LastState>, double>(1), 5);
  for (std::size_t b = 0; b < 2; ++b)
    for (std::size_t i = 0; i < 5; ++i) {
      CHECK(last[5 * b + i] == all[20 * b + 15 + i]);
      CHECK(first[5 * b + i] == back[20 * b + i]);
    }
}

TEST_CASE("Recurrent layers' gradients agree with finite differences", "[nn]") {
  LayerHarness<Rnn<3>, Shape<5, 2>>(3, 2).check_gradients(1e-5);
  LayerHarness<Rnn<3, Reversed, LastState>, Shape<5, 2>>(3, 2).check_gradients(1e-5);
  LayerHarness<Lstm<9>, Shape<3, 4>>(2).check_gradients(1e-5);
  LayerHarness<Gru<9, Reversed>, Shape<3, 4>>(2, 2).check_gradients(1e-5);
  LayerHarness<Lstm<17, LastState, Reversed>, Shape<4, 2>>(3).check_gradients(1e-5);
  LayerHarness<Gru<17, LastState>, Shape<1, 20>>(3).check_gradients(1e-5);
}

namespace {
/// The parameters of make_recurrent.py's networks, behind the first `before`: 0.5 sin(step (i + 1)), another step each.
template <class Model> void set_waves(Model& model, std::size_t before = 0) {
  auto weights = model.modify();
  double step = 0.31;
  const auto all = Model::program.parameters();
  for (std::size_t p = before; p < all.size(); ++p) {
    const sk::plan::Entry& e = all[p];
    const long width = e.extents.last();
    for (long i = 0; i < e.extents.count(); ++i)
      weights[e.offset + i / width * sk::row_pitch(width) + i % width] = 0.5 * support::wave(i, step);
    step += 0.17;
  }
}
/// What is stored behind each other, without the gaps.
template <class Model> Values logical(const Model&, const double* first, const sk::plan::Entry& e) {
  const long width = e.extents.last();
  Values v;
  for (long i = 0; i < e.extents.count(); ++i) v.push_back(first[e.offset + i / width * sk::row_pitch(width) + i % width]);
  return v;
}
template <class Cell> using Head = nn::Sequential<Cell, nn::EachPosition<nn::Linear<2>>>;

/// Three windows of two sequences, twice, in steps of SGD; the states go on within each round.
template <class Cell> void truncated(const Values& losses, const Values& weight_hh) {
  using Model = sk::Model<Head<Cell>, Shape<4, 3>, sk::Cpu, double>;
  for (const int workers : {1, 2}) {
    Model model;
    set_waves(model);
    sk::Executor executor{model, nn::Mse{}, {.capacity = 2, .threads = workers}};
    CHECK_FALSE(executor.depth_first());
    sk::optim::BoundOptimizer sgd{sk::optim::Sgd{.lr = 0.5f}, model};
    Values got;
    for (int round = 0; round < 2; ++round) {
      executor.reset_states();
      for (long window = 0; window < 3; ++window) {
        Values x, target;
        for (long b = 0; b < 2; ++b) {
          for (long i = 0; i < 12; ++i) x.push_back(support::wave((b * 3 + window) * 12 + i, 0.7, 0.1));
          for (long i = 0; i < 8; ++i) target.push_back(support::wave((b * 3 + window) * 8 + i, 1.3));
        }
        got.push_back(executor.forward_backward(sk::BatchView<double>{x.data(), 12, nullptr, target.data(), 8, 2}).mean());
        sgd.step(model);
      }
    }
    CHECK(test::first_apart<double>(got, losses, 64) == -1);
    CHECK(test::first_apart<double>(logical(model, model.parameters().data, Model::program.parameters()[1]), weight_hh, 64) ==
          -1);
  }
}

/// The square, or an exception while it is told to.
bool throws = false;
struct Throwing {
  constexpr auto operator()(auto y, auto t) const {
    if (throws) throw std::runtime_error("in the loss");
    return (y - t) * (y - t);
  }
};
}  // namespace

TEST_CASE("Two layers in both directions agree with PyTorch", "[nn]") {
  using Both = nn::Concat<Lstm<5>, Lstm<5, Reversed>>;
  using Model = sk::Model<nn::Sequential<Both, Both>, Shape<4, 3>, sk::Cpu, double>;
  for (const int workers : {1, 2}) {
    Model model;
    set_waves(model);
    Values x, target;
    for (long i = 0; i < 24; ++i) x.push_back(support::wave(i, 0.7, 0.1));
    for (long i = 0; i < 80; ++i) target.push_back(support::wave(i, 1.3));
    sk::Executor executor{model, nn::Mse{}, {.capacity = 2, .threads = workers}};
    executor.forward_backward(sk::BatchView<double>{x.data(), 12, nullptr, target.data(), 40, 2});
    CHECK(test::first_apart<double>(Values(executor.outputs(), executor.outputs() + 80), fixtures::stacked_y, 64) == -1);
    Values all;
    for (const sk::plan::Entry& e : Model::program.parameters()) {
      const Values one = logical(model, model.gradients().data, e);
      all.insert(all.end(), one.begin(), one.end());
    }
    CHECK(test::first_apart<double>(all, fixtures::stacked_gradients, 64) == -1);
  }
}

namespace {
/// Adds a parameter to each value of a sample, whose gradient for a batch of one sample is that of its inputs.
struct Shift {
  static constexpr sk::LayerInfo describe(sk::Extents in) {
    return {.output = in, .parameters = {{{"shift", in, sk::Init::zeros, 1, 1}}}};
  }
  template <class In, class Frame> static void forward(Frame& f) {
    for (long i = 0; i < f.batch * In::count; ++i) f.y[i] = f.x[i] + f.parameters[stored<In>(i % In::count)];
  }
  template <class In, class Frame> static void backward(Frame& f) {
    for (long i = 0; i < f.batch * In::count; ++i) f.gradients[stored<In>(i % In::count)] += f.dy[i];
    if (f.dx) std::copy_n(f.dy, f.batch * In::count, f.dx);
  }
  template <class In> static constexpr long stored(long i) {
    constexpr long width = In::extents.last();
    return i / width * sk::row_pitch(width) + i % width;
  }
};

/// Outputs, input gradients and the gradients of the parameters of a network over (4, 3) behind a Shift, as PyTorch's.
template <class Net> void follows_both(const Values& y, const Values& dx, const Values& gradients) {
  using Model = sk::Model<nn::Sequential<Shift, Net>, Shape<4, 3>, sk::Cpu, double>;
  constexpr sk::Extents out = Model::sizes.output;
  constexpr long outputs = out.count(), pitch = sk::sample_pitch(out);
  Values x, target;
  for (long i = 0; i < 24; ++i) x.push_back(support::wave(i, 0.7, 0.1));
  for (long i = 0; i < 2 * outputs; ++i) target.push_back(support::wave(i, 1.3));
  for (const int workers : {1, 2}) {
    Model model;
    set_waves(model, 1);
    sk::Executor executor{model, nn::Mse{}, {.capacity = 2, .threads = workers}};
    const auto all = Model::program.parameters();
    executor.forward_backward(sk::BatchView<double>{x.data(), 12, nullptr, target.data(), outputs, 2});
    Values got, made;
    for (long b = 0; b < 2; ++b) got.insert(got.end(), executor.outputs() + b * pitch, executor.outputs() + b * pitch + outputs);
    CHECK(test::first_apart<double>(got, y, 64) == -1);
    for (std::size_t p = 1; p < all.size(); ++p)
      for (const double g : logical(model, model.gradients().data, all[p])) made.push_back(g);
    CHECK(test::first_apart<double>(made, gradients, 64) == -1);
    made.clear();
    for (long b = 0; b < 2; ++b) {
      executor.forward_backward(sk::BatchView<double>{x.data() + 12 * b, 12, nullptr, target.data() + outputs * b, outputs, 1},
                                {.of_samples = 2});
      for (const double g : logical(model, model.gradients().data, all[0])) made.push_back(g);
    }
    CHECK(test::first_apart<double>(made, dx, 64) == -1);
  }
}
/// Both directions of a cell of 5 values.
template <template <int, class...> class Cell, class... Options> using BothOf =
    nn::Concat<Cell<5, Options...>, Cell<5, Reversed, Options...>>;
}  // namespace

TEST_CASE("Both directions of Rnn, Lstm and Gru have the gradients of PyTorch's, of all states and of the last of each", "[nn]") {
  using namespace fixtures;
  follows_both<BothOf<Rnn>>(rnn_both_y, rnn_both_dx, rnn_both_gradients);
  follows_both<BothOf<Lstm>>(lstm_both_y, lstm_both_dx, lstm_both_gradients);
  follows_both<BothOf<Gru>>(gru_both_y, gru_both_dx, gru_both_gradients);
  follows_both<BothOf<Rnn, LastState>>(rnn_last_y, rnn_last_dx, rnn_last_gradients);
  follows_both<BothOf<Lstm, LastState>>(lstm_last_y, lstm_last_dx, lstm_last_gradients);
  follows_both<BothOf<Gru, LastState>>(gru_last_y, gru_last_dx, gru_last_gradients);
}

TEST_CASE("Dropout between two layers: the gradient is that of the mask", "[nn]") {
  using Net = nn::Sequential<Gru<5>, nn::Dropout<sk::Rate<1, 3>>, Gru<4, LastState>>;
  using Model = sk::Model<Net, Shape<4, 3>, sk::Cpu, double>;
  Model model{sk::Seed{5}};
  Values x, target;
  for (long i = 0; i < 36; ++i) x.push_back(support::wave(i, 0.7, 0.1));
  for (long i = 0; i < 12; ++i) target.push_back(support::wave(i, 1.3));
  const sk::BatchView<double> batch{x.data(), 12, nullptr, target.data(), 4, 3};
  sk::Executor executor{model, nn::Mse{}, {.capacity = 3, .threads = 2}};
  executor.forward_backward(batch, {.key = 3});
  const Values g(model.gradients().begin(), model.gradients().end());
  double gap = 0, norm = 0;
  for (const sk::plan::Entry& e : Model::program.parameters())
    for (long i = 0; i < e.extents.last(); ++i) {  // a row of each
      const double before = model.parameters()[e.offset + i], h = 1e-5;
      model.modify()[e.offset + i] = before + h;
      const double up = executor.forward_backward(batch, {.key = 3}).mean();
      model.modify()[e.offset + i] = before - h;
      const double down = executor.forward_backward(batch, {.key = 3}).mean();
      model.modify()[e.offset + i] = before;
      gap += std::pow((up - down) / (2 * h) - g[static_cast<std::size_t>(e.offset + i)], 2);
      norm += std::pow(g[static_cast<std::size_t>(e.offset + i)], 2);
    }
  REQUIRE(norm > 0);
  CHECK(std::sqrt(gap / norm) < 1e-7);
  CHECK(executor.forward_backward(batch, {.key = 4}).mean() != executor.forward_backward(batch, {.key = 3}).mean());
}

TEST_CASE("Stateful layers go on where the batch before has ended, as PyTorch's with the state given back", "[nn]") {
  using namespace fixtures;
  truncated<Rnn<5, sk::Stateful>>(rnn_truncated_losses, rnn_truncated_weight_hh);
  truncated<Lstm<5, sk::Stateful>>(lstm_truncated_losses, lstm_truncated_weight_hh);
  truncated<Gru<5, sk::Stateful>>(gru_truncated_losses, gru_truncated_weight_hh);

  using Model = sk::Model<nn::Sequential<Lstm<5, sk::Stateful, LastState>, nn::Linear<2>>, Shape<4, 3>, sk::Cpu, double>;
  Model model;
  const Values x(36, 0.5), target(6 * 8, 0.25);
  const sk::BatchView<double> two{x.data(), 12, nullptr, target.data(), 8, 2}, three{x.data(), 12, nullptr, target.data(), 8, 3};
  sk::Executor executor{model, nn::Mse{}, {.capacity = 3, .threads = 1}};
  const double first = executor.evaluate(two).mean();
  CHECK(executor.evaluate(two).mean() != first);  // from the states that the first call has left
  CHECK_THROWS_WITH(executor.evaluate(three),
                    "Executor: the batch has 3 samples, and the states of Stateful layers are of the 2 of the batch before: each "
                    "sample goes on where the one in its place has ended; executor.reset_states() begins with zeros");
  executor.reset_states();
  CHECK(executor.evaluate(two).mean() == first);
  executor.reset_states();
  CHECK_NOTHROW(executor.evaluate(three));
  CHECK_THROWS_WITH((sk::Executor{model, nn::Mse{}, {.capacity = 3, .execution = sk::Execution::depth_first}}),
                    Catch::Contains("a network with Stateful layers needs the whole batch in each layer"));
}

TEST_CASE("A call that throws in its pass leaves no states: the next begins with zeros, of any size", "[nn]") {
  using Model = sk::Model<nn::Sequential<Lstm<5, sk::Stateful, LastState>, nn::Linear<2>>, Shape<4, 3>, sk::Cpu, double>;
  Model model;
  const Values x(36, 0.5), target(6, 0.25);
  const auto batch = [&](long n) { return sk::BatchView<double>{x.data(), 12, nullptr, target.data(), 2, n}; };
  for (const int threads : {1, 2}) {
    sk::Executor executor{model, nn::OwnLoss{Throwing{}}, {.capacity = 3, .threads = threads}};
    const double first = executor.evaluate(batch(2)).mean(), second = executor.evaluate(batch(2)).mean();
    REQUIRE(first != second);
    executor.reset_states();
    throws = true;
    CHECK_THROWS_WITH(executor.evaluate(batch(2)), "in the loss");
    CHECK_THROWS_WITH(executor.forward_backward(batch(2)), "in the loss");
    throws = false;
    CHECK(executor.evaluate(batch(2)).mean() == first);
    CHECK(executor.evaluate(batch(2)).mean() == second);
    throws = true;
    CHECK_THROWS_WITH(executor.forward_backward(batch(2)), "in the loss");
    throws = false;
    CHECK_NOTHROW(executor.evaluate(batch(3)));
  }
}
