// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <skein/nn/check.hpp>
#include <skein/nn/zero_pad2d.hpp>

#include "fixtures/conv.hpp"
#include "support/conv_cases.hpp"

using namespace skein;
using nn::ZeroPad2d;
using support::LayerHarness;
using support::matches_pytorch;

TEST_CASE("ZeroPad2d describes itself, and refuses") {
  STATIC_REQUIRE(ZeroPad2d<3>::describe({3, {28, 27, 6}}).output == Extents{3, {34, 33, 6}});
  STATIC_REQUIRE(ZeroPad2d<0, Stride<2>>::describe({3, {28, 27, 6}}).output == Extents{3, {14, 14, 6}});
  STATIC_REQUIRE(ZeroPad2d<1, Stride<3>, ZeroChannels<2, 1>>::describe({3, {5, 6, 2}}).output == Extents{3, {3, 3, 5}});
  STATIC_REQUIRE(ZeroPad2d<1>::describe({1, {28}}).fault == nn::Fault::wants_image);
  assert_layer<ZeroPad2d<1>, Shape<4, 4, 1>>();
}
TEST_CASE("ZeroPad2d agrees with PyTorch") {
  using namespace fixtures;
  matches_pytorch<ZeroPad2d<1>, Shape<3, 4, 3>>(zero_pad_y, zero_pad_dx);
  matches_pytorch<ZeroPad2d<0, ZeroChannels<1, 2>, Stride<2>>, Shape<5, 4, 2>>(zero_pad_strided_y, zero_pad_strided_dx);
}
TEST_CASE("ZeroPad2d: the gradient is the derivative") {
  LayerHarness<ZeroPad2d<2, Stride<3>>, Shape<6, 7, 3>>(2).check_gradients();
  LayerHarness<ZeroPad2d<1, Stride<2>, ZeroChannels<3, 0>>, Shape<4, 5, 2>>(3).check_gradients();
}
