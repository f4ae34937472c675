// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <algorithm>
#include <cmath>

#include <skein/nn/layer_norm.hpp>

#include "fixtures/norm_loss_optim.hpp"
#include "support/larger.hpp"
#include "support/norm_cases.hpp"

using skein::Shape;
using skein::nn::LayerNorm;
using support::LayerHarness;

TEST_CASE("LayerNorm says what it needs", "[nn]") {
  constexpr auto info = LayerNorm<>::describe({3, {4, 4, 6}});
  STATIC_REQUIRE(info.output == skein::Extents{3, {4, 4, 6}});
  STATIC_REQUIRE(info.parameter_count() == 12);
  STATIC_REQUIRE_FALSE(info.couples_batch);
  STATIC_REQUIRE_FALSE(info.parameters[0].decay);
}

TEST_CASE("LayerNorm over the last extent agrees with PyTorch", "[nn]") {
  using namespace fixtures;
  using L = LayerNorm<skein::Epsilon<1, 1000>>;
  support::norm_follows<L, Shape<21>>(4, {ln_flat_y, ln_flat_dx, ln_flat_dweight, ln_flat_dbias});
  support::norm_follows<L, Shape<2, 3, 5>>(2, {ln_image_y, ln_image_dx, ln_image_dweight, ln_image_dbias});
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

TEST_CASE("LayerNorm: a row of large equal values becomes the bias, and one that sticks out is seen", "[nn]") {
  for (const double level : {1234.567, 12345.678, 54321.98, 1e6 + 0.3}) {
    LayerHarness<LayerNorm<>, Shape<100>, float> h(2);
    h.set_parameter(1, [](long i) { return 0.5 * static_cast<double>(i); });
    h.set_x([&](long b, long i) { return level + (b == 1 && i == 50 ? 8 : 0); });
    h.forward();
    INFO(level);
    double apart = 0;
    for (long i = 0; i < 100; ++i)
      apart = support::larger(apart, static_cast<double>(h.y_at(0, i)) - 0.5 * static_cast<double>(i));
    CHECK(apart == 0);
    CHECK(h.y_at(1, 50) - 25 == Approx(9.9498).epsilon(0.01));
    CHECK(h.y_at(1, 51) - 25.5 == Approx(-0.1005).margin(0.04));
  }
}
