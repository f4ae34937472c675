// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>

#include <skein/nn/layer_norm.hpp>

#include "fixtures/norm_loss_optim.hpp"
#include "support/apart.hpp"
#include "support/layer_harness.hpp"

using skein::Shape;
using skein::nn::LayerNorm;
using support::LayerHarness;

namespace {
template <class In, class Scalar> void follows(long batch, int workers, const std::vector<double>& y,
                                               const std::vector<double>& dx, const std::vector<double>& dweight,
                                               const std::vector<double>& dbias) {
  LayerHarness<LayerNorm<skein::Epsilon<1, 1000>>, In, Scalar> h(batch, workers);
  h.set_parameter(0, [](long i) { return 1 + 0.3 * support::wave(i, 0.5); });
  h.set_parameter(1, [](long i) { return support::wave(i, 0.8); });
  h.set_x([](long b, long i) { return 2 * support::wave(b * In::count + i, 0.7, 0.1) + 1; });
  h.set_dy([](long b, long i) { return support::wave(b * In::count + i, 1.3); });
  h.forward();
  h.backward();
  std::vector<double> got_y, got_dx, got_weight, got_bias;
  for (long b = 0; b < batch; ++b)
    for (long i = 0; i < In::count; ++i) {
      got_y.push_back(static_cast<double>(h.y_at(b, i)));
      got_dx.push_back(static_cast<double>(h.dx_at(b, i)));
    }
  for (long i = 0; i < In::extents.last(); ++i) {
    got_weight.push_back(static_cast<double>(h.gradient_at(0, i)));
    got_bias.push_back(static_cast<double>(h.gradient_at(1, i)));
  }
  CHECK(test::first_apart<Scalar>(got_y, y, 64) == -1);
  CHECK(test::first_apart<Scalar>(got_dx, dx, 64) == -1);
  CHECK(test::first_apart<Scalar>(got_weight, dweight, 64) == -1);
  CHECK(test::first_apart<Scalar>(got_bias, dbias, 64) == -1);
  CHECK(h.worst_gap() == 0);
  CHECK(h.intact());
}
}  // namespace

TEST_CASE("LayerNorm says what it needs", "[nn]") {
  constexpr auto info = LayerNorm<>::describe({3, {4, 4, 6}});
  STATIC_REQUIRE(info.output == skein::Extents{3, {4, 4, 6}});
  STATIC_REQUIRE(info.parameter_count() == 12);
  STATIC_REQUIRE_FALSE(info.couples_batch);
  STATIC_REQUIRE_FALSE(info.parameters[0].decay);
}

TEST_CASE("LayerNorm over the last extent agrees with PyTorch", "[nn]") {
  for (const int workers : {1, 3}) {
    follows<Shape<21>, double>(4, workers, fixtures::ln_flat_y, fixtures::ln_flat_dx, fixtures::ln_flat_dweight,
                               fixtures::ln_flat_dbias);
    follows<Shape<21>, float>(4, workers, fixtures::ln_flat_y, fixtures::ln_flat_dx, fixtures::ln_flat_dweight,
                              fixtures::ln_flat_dbias);
    follows<Shape<2, 3, 5>, double>(2, workers, fixtures::ln_image_y, fixtures::ln_image_dx, fixtures::ln_image_dweight,
                                    fixtures::ln_image_dbias);
    follows<Shape<2, 3, 5>, float>(2, workers, fixtures::ln_image_y, fixtures::ln_image_dx, fixtures::ln_image_dweight,
                                   fixtures::ln_image_dbias);
  }
}

TEST_CASE("LayerNorm's gradients agree with finite differences", "[nn]") {
  LayerHarness<LayerNorm<>, Shape<7>>(5, 2).check_gradients(1e-5);
  LayerHarness<LayerNorm<>, Shape<33>>(3).check_gradients(1e-5);
  LayerHarness<LayerNorm<>, Shape<3, 2, 18>>(3, 2).check_gradients(1e-5);
  LayerHarness<LayerNorm<>, Shape<4, 8>>(2).check_gradients(1e-5);
}

TEST_CASE("LayerNorm: a row that is constant becomes the bias; the epsilon matters; gaps are written as zeros", "[nn]") {
  LayerHarness<LayerNorm<>, Shape<21>, float> h(3);
  h.set_parameter(1, [](long i) { return 0.5 * static_cast<double>(i); });
  h.set_x([](long b, long i) { return b == 1 ? 3.0 : static_cast<double>(i); });
  h.forward();
  for (long i = 0; i < 21; ++i) CHECK(h.y_at(1, i) == Approx(0.5 * static_cast<double>(i)));
  for (long i = 21; i < 32; ++i) CHECK(h.y_at(1, i) == 0);
  LayerHarness<LayerNorm<skein::Epsilon<10, 1>>, Shape<21>, float> soft(3);
  soft.set_x([](long b, long i) { return b == 1 ? 3.0 : static_cast<double>(i); });
  soft.forward();
  CHECK(std::abs(soft.y_at(0, 0)) < std::abs(h.y_at(0, 0)) - 0.05f);
}
