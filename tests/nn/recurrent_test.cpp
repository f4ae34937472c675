// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <skein/nn/check.hpp>
#include <skein/nn/concat.hpp>
#include <skein/nn/recurrent.hpp>

#include "fixtures/recurrent.hpp"
#include "support/apart.hpp"
#include "support/layer_harness.hpp"

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
  LayerHarness<Lstm<9>, Shape<3, 4>>(2).check_gradients(1e-5);
  LayerHarness<Gru<9, Reversed>, Shape<3, 4>>(2, 2).check_gradients(1e-5);
  LayerHarness<Lstm<17, LastState, Reversed>, Shape<4, 2>>(3).check_gradients(1e-5);
  LayerHarness<Gru<17, LastState>, Shape<1, 20>>(3).check_gradients(1e-5);
}
