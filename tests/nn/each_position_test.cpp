// SPDX-License-Identifier: Apache-2.0
// A layer on each position of a sequence: the bits of the same layer on as many samples, and finite differences.
#include <catch2/catch.hpp>

#include <skein/nn/check_gradients.hpp>
#include <skein/nn/each_position.hpp>
#include <skein/nn/tanh.hpp>

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
}  // namespace

TEST_CASE("Linear on each position is Linear on as many samples", "[nn]") {
  is_the_layer_alone<5, 6, 7, double>(3, 1);
  is_the_layer_alone<5, 6, 7, float>(5, 2);
  is_the_layer_alone<16, 3, 32, float>(4, 1);  // rows without gaps: nothing is copied
  is_the_layer_alone<65, 4, 16, float>(4, 3);  // the outputs are
  is_the_layer_alone<16, 4, 65, float>(4, 1);  // the inputs are
  is_the_layer_alone<4, 5, 3, double, sk::NoBias>(2, 1);
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

TEST_CASE("EachPosition takes sequences", "[nn]") {
  STATIC_REQUIRE(nn::EachPosition<nn::Linear<5>>::describe({1, {7}}).fault == nn::Fault::own);
  STATIC_REQUIRE(nn::EachPosition<nn::Linear<5>>::describe({3, {2, 3, 7}}).fault == nn::Fault::own);
  STATIC_REQUIRE(nn::EachPosition<nn::Linear<5>>::describe({2, {3, 7}}).parameter_count() == 40);
}
