// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <skein/nn/check_gradients.hpp>
#include <skein/nn/group_norm.hpp>
#include <skein/nn/layer_norm.hpp>

#include "fixtures/norm_loss_optim.hpp"
#include "support/norm_cases.hpp"

using skein::Shape;
using skein::nn::GroupNorm;
using support::LayerHarness;

TEST_CASE("GroupNorm says what it needs, and refuses", "[nn]") {
  constexpr auto info = GroupNorm<3>::describe({3, {4, 4, 6}});
  STATIC_REQUIRE(info.output == skein::Extents{3, {4, 4, 6}});
  STATIC_REQUIRE(info.parameter_count() == 12);
  STATIC_REQUIRE(info.saved_for_backward == 6);
  STATIC_REQUIRE_FALSE(info.couples_batch);
  STATIC_REQUIRE(info.fault == skein::nn::Fault::none);
  STATIC_REQUIRE(GroupNorm<4>::describe({3, {4, 4, 6}}).fault == skein::nn::Fault::groups_do_not_divide);
}

TEST_CASE("GroupNorm agrees with PyTorch on images, sequences and flat samples", "[nn]") {
  using namespace fixtures;
  support::norm_follows<GroupNorm<2, skein::Epsilon<1, 1000>>, Shape<3, 4, 6>>(
      2, {gn_image_y, gn_image_dx, gn_image_dweight, gn_image_dbias});
  support::norm_follows<GroupNorm<4>, Shape<5, 8>>(3, {gn_sequence_y, gn_sequence_dx, gn_sequence_dweight, gn_sequence_dbias});
  support::norm_follows<GroupNorm<3>, Shape<21>>(4, {gn_flat_y, gn_flat_dx, gn_flat_dweight, gn_flat_dbias});
}

TEST_CASE("GroupNorm's gradients agree with finite differences", "[nn]") {
  LayerHarness<GroupNorm<1>, Shape<3, 2, 5>>(4, 4).check_gradients(1e-5);
  LayerHarness<GroupNorm<5>, Shape<4, 3, 5>>(3, 2).check_gradients(1e-5);
  LayerHarness<GroupNorm<2>, Shape<7, 32>>(2).check_gradients(1e-5);
  const auto found = skein::check_gradients<GroupNorm<2>, Shape<9, 4>>();
  INFO(found.text());
  CHECK(bool(found));
}

namespace {
template <class In> void is_layer_norm(long step) {
  LayerHarness<GroupNorm<1>, In> groups(3);
  LayerHarness<skein::nn::LayerNorm<>, In> rows(3);
  groups.forward();
  rows.forward();
  groups.backward();
  rows.backward();
  for (long b = 0; b < 3; ++b)
    for (long i = 0; i < In::count; i += step) {
      CHECK(groups.y_at(b, i) == Approx(rows.y_at(b, i)).margin(1e-12).epsilon(0));
      CHECK(groups.dx_at(b, i) == Approx(rows.dx_at(b, i)).margin(1e-12).epsilon(0));
    }
  CHECK(groups.intact());
}
}  // namespace

TEST_CASE("GroupNorm<1> of a flat sample is LayerNorm, of more channels than stand on the stack too", "[nn]") {
  is_layer_norm<Shape<21>>(1);
  is_layer_norm<Shape<17000>>(999);
}

TEST_CASE("GroupNorm does not see by what a group is multiplied, nor what is added to it", "[nn]") {
  LayerHarness<GroupNorm<2>, Shape<3, 3, 4>> h(1), other(1);
  other.set_x([&](long b, long i) { return i % 4 < 2 ? h.x_at(b, i) : 30 * h.x_at(b, i) + 7; });
  h.forward();
  other.forward();
  for (long i = 0; i < 36; ++i) CHECK(other.y_at(0, i) == Approx(h.y_at(0, i)).margin(1e-3));
}

TEST_CASE("GroupNorm in double has its variance at a mean of 1e8 deviations", "[nn]") {
  LayerHarness<GroupNorm<2>, Shape<3, 3, 4>, double> h(2), near(2);
  const auto x = [](long b, long i) { return static_cast<double>((b * 36 + i) * 37 % 64) / 64; };  // and 1e8: exact
  near.set_x(x);
  h.set_x([&](long b, long i) { return 1e8 + x(b, i); });
  h.forward(), near.forward();
  for (long i = 0; i < 36; ++i) CHECK(h.y_at(1, i) == Approx(near.y_at(1, i)).margin(1e-6).epsilon(0));
}
