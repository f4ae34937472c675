// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>

#include <skein/nn/check_gradients.hpp>
#include <skein/nn/rms_norm.hpp>

#include "fixtures/norm_loss_optim.hpp"
#include "support/norm_cases.hpp"

using skein::Shape;
using skein::nn::RmsNorm;
using support::LayerHarness;

TEST_CASE("RmsNorm says what it needs", "[nn]") {
  constexpr auto info = RmsNorm<>::describe({3, {4, 4, 6}});
  STATIC_REQUIRE(info.output == skein::Extents{3, {4, 4, 6}});
  STATIC_REQUIRE(info.parameter_count() == 6);
  STATIC_REQUIRE(info.saved_for_backward == 16);
  STATIC_REQUIRE_FALSE(info.couples_batch);
  STATIC_REQUIRE_FALSE(info.parameters[0].decay);
}

TEST_CASE("RmsNorm over the last extent agrees with PyTorch, with its default epsilon too", "[nn]") {
  using namespace fixtures;
  support::norm_follows<RmsNorm<skein::Epsilon<1, 1000>>, Shape<21>>(4, {rms_flat_y, rms_flat_dx, rms_flat_dweight});
  support::norm_follows<RmsNorm<>, Shape<2, 3, 5>>(2, {rms_image_y, rms_image_dx, rms_image_dweight});
}

TEST_CASE("RmsNorm's gradients agree with finite differences", "[nn]") {
  LayerHarness<RmsNorm<>, Shape<7>>(5, 2).check_gradients(1e-5);
  LayerHarness<RmsNorm<>, Shape<33>>(3).check_gradients(1e-5);
  LayerHarness<RmsNorm<>, Shape<3, 2, 18>>(3, 4).check_gradients(1e-5);
  const auto found = skein::check_gradients<RmsNorm<>, Shape<4, 8>>();
  INFO(found.text());
  CHECK(bool(found));
}

TEST_CASE("RmsNorm does not see by what a row is multiplied, and sees its mean; gaps are written as zeros", "[nn]") {
  LayerHarness<RmsNorm<>, Shape<21>, float> h(2);
  h.set_x([](long b, long i) { return (b == 1 ? 50.0 : 1.0) * (static_cast<double>(i) - 3); });
  h.forward();
  for (long i = 0; i < 21; ++i) CHECK(h.y_at(1, i) == Approx(h.y_at(0, i)).margin(1e-6).epsilon(0));
  for (long i = 21; i < 32; ++i) CHECK(h.y_at(1, i) == 0);
  h.set_x([](long, long) { return 3.0; });
  h.forward();
  for (long i = 0; i < 21; ++i) CHECK(h.y_at(0, i) == Approx(1));
}
