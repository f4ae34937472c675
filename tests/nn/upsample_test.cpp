// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <skein/nn/check.hpp>
#include <skein/nn/upsample.hpp>

#include "fixtures/conv.hpp"
#include "support/conv_cases.hpp"

using namespace skein;
using support::LayerHarness;
using support::matches_pytorch;

TEST_CASE("Upsample describes itself, and refuses") {
  STATIC_REQUIRE(nn::Upsample<3>::describe({3, {4, 5, 6}}).output == Extents{3, {12, 15, 6}});
  STATIC_REQUIRE(nn::Upsample<2, Bilinear>::describe({3, {4, 5, 6}}).parameter_count() == 0);
  STATIC_REQUIRE(nn::Upsample<2>::describe({1, {9}}).fault == nn::Fault::wants_image);
  assert_layer<nn::Upsample<2, Bilinear>, Shape<9, 9, 4>>();
}

TEST_CASE("Upsample agrees with PyTorch") {
  using namespace fixtures;
  matches_pytorch<nn::Upsample<3>, Shape<2, 3, 3>>(nearest_y, nearest_dx);
  matches_pytorch<nn::Upsample<2, Bilinear>, Shape<3, 4, 3>>(bilinear_y, bilinear_dx);
  matches_pytorch<nn::Upsample<3, Bilinear>, Shape<2, 5, 2>>(bilinear_by_three_y, bilinear_by_three_dx);
}

TEST_CASE("Upsample: the gradient is the derivative, by any number of workers") {
  LayerHarness<nn::Upsample<2>, Shape<3, 2, 3>>(3, 2).check_gradients();
  LayerHarness<nn::Upsample<2, Bilinear>, Shape<3, 2, 3>>(4, 4).check_gradients(1e-5);
  LayerHarness<nn::Upsample<4, Bilinear>, Shape<1, 3, 2>>(2).check_gradients(1e-5);
}

TEST_CASE("Upsample by 1 is the image; what is constant stays so, and the sum of the gradient with it") {
  LayerHarness<nn::Upsample<1, Bilinear>, Shape<4, 3, 2>> same(2);
  same.forward();
  for (long i = 0; i < 24; ++i) CHECK(same.y_at(1, i) == same.x_at(1, i));
  LayerHarness<nn::Upsample<3, Bilinear>, Shape<4, 3, 2>> h(1);
  h.set_x([](long, long) { return 2.5; });
  h.forward();
  h.backward();
  double given = 0, found = 0;
  for (long i = 0; i < h.out_count; ++i) {
    CHECK(h.y_at(0, i) == Approx(2.5));
    given += h.dy_at(0, i);
  }
  for (long i = 0; i < h.in_count; ++i) found += h.dx_at(0, i);
  CHECK(found == Approx(given).margin(1e-6).epsilon(0));
}
