// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <skein/nn/check.hpp>
#include <skein/nn/conv2d.hpp>

#include "fixtures/conv.hpp"
#include "support/conv_cases.hpp"

using namespace skein;
using support::conv_follows;
using support::LayerHarness;
using support::matches_pytorch;

TEST_CASE("Conv2d describes itself") {
  constexpr LayerInfo i = nn::Conv2d<6, Kernel<5>, Padding<2>>::describe({3, {28, 28, 1}});
  static_assert(i.output == Extents{3, {28, 28, 6}});
  static_assert(i.parameters[0].extents == Extents{4, {5, 5, 1, 6}} && i.parameters[0].fan_in == 25 &&
                i.parameters[0].fan_out == 150);
  static_assert(i.parameters[1].extents == Extents{1, {6}} && !i.parameters[1].decay &&
                i.parameters[1].init == Init::fan_in_uniform);
  static_assert(i.parameter_count() == 156 && i.stored_parameters() == 208 && i.flops == 2 * 28 * 28 * 150);
  static_assert(i.saves_input && !i.saves_output && i.fault == nn::Fault::none && i.curvature[0].a == 26 &&
                i.curvature[0].g == 6);
  using Strided = nn::Conv2d<32, Kernel<3>, Stride<2>, Padding<1>, NoBias, WeightInit<Init::kaiming_normal>>;
  static_assert(Strided::describe({3, {33, 20, 16}}).output == Extents{3, {17, 10, 32}});
  static_assert(Strided::describe({3, {33, 20, 16}}).entries() == 1);
  static_assert(Strided::describe({3, {33, 20, 16}}).parameters[0].init == Init::kaiming_normal);
  using Grouped = nn::Conv2d<6, Kernel<3>, Groups<2>, Dilation<2>>;
  static_assert(Grouped::describe({3, {9, 9, 4}}).output == Extents{3, {5, 5, 6}});
  static_assert(Grouped::describe({3, {9, 9, 4}}).parameters[0].extents == Extents{4, {3, 3, 2, 6}});
  assert_layer<Grouped, Shape<9, 9, 4>>();
  SUCCEED();
}
TEST_CASE("Conv2d refuses what does not fit, with legal extents") {
  using L = nn::Conv2d<6, Kernel<5>, Groups<2>>;
  STATIC_REQUIRE(L::describe({1, {100}}).fault == nn::Fault::wants_image);
  STATIC_REQUIRE(L::describe({3, {4, 9, 2}}).fault == nn::Fault::window_too_large);
  STATIC_REQUIRE(L::describe({3, {4, 9, 2}}).output == Extents{3, {1, 1, 6}});
  STATIC_REQUIRE(L::describe({3, {9, 9, 3}}).fault == nn::Fault::groups_do_not_divide);
  STATIC_REQUIRE(L::describe({3, {9, 9, 1}}).parameters[0].extents[2] == 1);
}

// ---- against plain loops: channels, filters, strides, paddings, widths; each kernel by name
TEST_CASE("Conv2d: one channel over the width") {
  conv_follows<nn::Conv2d<3, Kernel<3>, Padding<1>>, Shape<17, 23, 1>>();
  conv_follows<nn::Conv2d<4, Kernel<4>, Stride<3>, Padding<2>, NoBias>, Shape<13, 41, 2>>();
}
TEST_CASE("Conv2d: few channels over the filters") {
  conv_follows<nn::Conv2d<16, Kernel<5>>, Shape<14, 14, 6>>();
  conv_follows<nn::Conv2d<5, Kernel<3>, Stride<2>, Padding<1>>, Shape<11, 9, 5>>();
  conv_follows<nn::Conv2d<40, Kernel<3>, Padding<1>, NoBias>, Shape<6, 7, 16>>();
  conv_follows<nn::Conv2d<7, Kernel<1>>, Shape<5, 6, 9>>();
}
TEST_CASE("Conv2d: dilation, groups, large windows, many channels") {
  conv_follows<nn::Conv2d<8, Kernel<3>, Dilation<2>, Padding<2>>, Shape<9, 8, 6>>();
  conv_follows<nn::Conv2d<12, Kernel<3>, Groups<3>, NoBias>, Shape<8, 7, 6>>();
  conv_follows<nn::Conv2d<10, Kernel<3>, Groups<10>, Stride<2>, Padding<1>>, Shape<8, 9, 10>>();
  conv_follows<nn::Conv2d<5, Kernel<9>, Padding<4>, Stride<2>>, Shape<12, 15, 3>>();
  conv_follows<nn::Conv2d<130, Kernel<1>>, Shape<3, 5, 40>>();
}
TEST_CASE("Conv2d: the gradient is the derivative") {
  LayerHarness<nn::Conv2d<3, Kernel<3>, Padding<1>, Stride<2>>, Shape<7, 8, 2>>(2).check_gradients();
  LayerHarness<nn::Conv2d<9, Kernel<5>, Padding<2>>, Shape<6, 7, 3>>(2).check_gradients();
  LayerHarness<nn::Conv2d<6, Kernel<3>, Groups<3>, Dilation<2>>, Shape<8, 7, 3>>(3).check_gradients();
}
TEST_CASE("Conv2d agrees with PyTorch") {
  using namespace fixtures;
  matches_pytorch<nn::Conv2d<5, Kernel<3>, Stride<2>, Padding<1>>, Shape<7, 6, 3>>(conv_strided_y, conv_strided_dx,
                                                                                   conv_strided_dweight, conv_strided_dbias);
  matches_pytorch<nn::Conv2d<4, Kernel<3>, Padding<2>, Dilation<2>>, Shape<9, 8, 2>>(conv_dilated_y, conv_dilated_dx,
                                                                                     conv_dilated_dweight, conv_dilated_dbias);
  matches_pytorch<nn::Conv2d<6, Kernel<3>, Groups<2>>, Shape<6, 5, 4>>(conv_grouped_y, conv_grouped_dx, conv_grouped_dweight,
                                                                       conv_grouped_dbias);
  matches_pytorch<nn::Conv2d<8, Kernel<3>, Groups<8>, Padding<1>, Stride<2>>, Shape<7, 6, 8>>(
      conv_depthwise_y, conv_depthwise_dx, conv_depthwise_dweight, conv_depthwise_dbias);
  matches_pytorch<nn::Conv2d<8, Kernel<3>, Groups<4>, Padding<1>>, Shape<5, 6, 4>>(
      conv_depthwise_twice_y, conv_depthwise_twice_dx, conv_depthwise_twice_dweight, conv_depthwise_twice_dbias);
  matches_pytorch<nn::Conv2d<8, Kernel<5>, NoBias>, Shape<6, 7, 6>>(conv_without_bias_y, conv_without_bias_dx,
                                                                    conv_without_bias_dweight);
  matches_pytorch<nn::Conv2d<6, Kernel<1>>, Shape<4, 5, 12>>(conv_1x1_y, conv_1x1_dx, conv_1x1_dweight, conv_1x1_dbias);
}
TEST_CASE("Conv2d: a shifted image gives a shifted output") {
  LayerHarness<nn::Conv2d<5, Kernel<3>>, Shape<8, 9, 2>, float> a(1), b(1);
  a.set_x([](long, long i) { return std::sin(0.37 * static_cast<double>(i)); });
  b.set_x([](long, long i) { return std::sin(0.37 * static_cast<double>(i - 2)); });  // one pixel to the right
  a.forward();
  b.forward();
  for (long row = 0; row < 6; ++row)
    for (long i = 5; i < 7 * 5; ++i) CHECK(b.y_at(0, row * 35 + i) == Approx(a.y_at(0, row * 35 + i - 5)).margin(1e-5));
}

// ---- along sequences and through volumes
TEST_CASE("Conv1d and Conv3d describe themselves, and refuse") {
  constexpr LayerInfo i = nn::Conv1d<6, Kernel<5>, Padding<2>, Stride<2>>::describe({2, {28, 3}});
  static_assert(i.output == Extents{2, {14, 6}} && i.parameters[0].extents == Extents{3, {5, 3, 6}});
  static_assert(i.parameters[0].fan_in == 15 && i.parameters[0].fan_out == 30 && i.curvature[0].a == 16 && i.curvature[0].g == 6);
  static_assert(i.flops == 2 * 14 * 6 * 15);
  constexpr auto grouped = nn::Conv2d<8, Kernel<3>, Groups<4>>::describe({3, {5, 5, 4}});  // PyTorch's: size(0) * 9
  static_assert(grouped.parameters[0].fan_in == 9 && grouped.parameters[0].fan_out == 72);
  constexpr LayerInfo v = nn::Conv3d<4, Kernel<3>, Padding<1>>::describe({4, {5, 6, 7, 2}});
  static_assert(v.output == Extents{4, {5, 6, 7, 4}} && v.parameters[0].extents == Extents{3, {27, 2, 4}});
  static_assert(v.parameters[0].fan_in == 54 && v.flops == 2L * 5 * 6 * 7 * 4 * 54);
  STATIC_REQUIRE(nn::Conv1d<4, Kernel<3>>::describe({3, {5, 5, 2}}).fault == nn::Fault::wants_sequence);
  STATIC_REQUIRE(nn::Conv1d<4, Kernel<3>>::describe({2, {2, 2}}).fault == nn::Fault::window_too_large);
  STATIC_REQUIRE(nn::Conv3d<4, Kernel<3>>::describe({3, {5, 5, 2}}).fault == nn::Fault::wants_volume);
  STATIC_REQUIRE(nn::Conv3d<4, Kernel<3>>::describe({4, {2, 5, 5, 2}}).fault == nn::Fault::window_too_large);
  STATIC_REQUIRE(nn::Conv3d<4, Kernel<3>, Groups<2>>::describe({4, {5, 5, 5, 3}}).fault == nn::Fault::groups_do_not_divide);
  assert_layer<nn::Conv1d<6, Kernel<3>>, Shape<9, 4>>();
  assert_layer<nn::Conv3d<6, Kernel<3>>, Shape<5, 5, 5, 4>>();
}
TEST_CASE("Conv1d against plain loops") {
  conv_follows<nn::Conv1d<5, Kernel<4>, Stride<3>, Padding<2>>, Shape<17, 3>>();
  conv_follows<nn::Conv1d<16, Kernel<3>, Dilation<4>, Groups<2>, NoBias>, Shape<20, 8>>();
}
TEST_CASE("Conv3d against plain loops") {
  conv_follows<nn::Conv3d<5, Kernel<3>, Stride<2>, Padding<1>>, Shape<5, 4, 6, 3>>();
  conv_follows<nn::Conv3d<8, Kernel<2>, Dilation<2>, Groups<4>, NoBias>, Shape<4, 5, 3, 4>>();
}
TEST_CASE("Conv1d and Conv3d agree with PyTorch") {
  using namespace fixtures;
  matches_pytorch<nn::Conv1d<5, Kernel<4>, Stride<2>, Padding<1>>, Shape<11, 3>>(conv1d_y, conv1d_dx, conv1d_dweight,
                                                                                 conv1d_dbias);
  matches_pytorch<nn::Conv1d<4, Kernel<3>, Dilation<3>, Padding<2>, Groups<2>>, Shape<12, 6>>(
      conv1d_grouped_y, conv1d_grouped_dx, conv1d_grouped_dweight, conv1d_grouped_dbias);
  matches_pytorch<nn::Conv3d<3, Kernel<3>, Padding<1>>, Shape<3, 4, 2, 2>>(conv3d_y, conv3d_dx, conv3d_dweight, conv3d_dbias);
  matches_pytorch<nn::Conv3d<6, Kernel<2>, Stride<2>, Groups<2>>, Shape<4, 5, 3, 4>>(
      conv3d_strided_y, conv3d_strided_dx, conv3d_strided_dweight, conv3d_strided_dbias);
}
TEST_CASE("Conv1d and Conv3d: the gradient is the derivative") {
  LayerHarness<nn::Conv1d<3, Kernel<3>, Padding<1>, Stride<2>>, Shape<9, 2>>(2, 2).check_gradients();
  LayerHarness<nn::Conv3d<3, Kernel<2>, Padding<1>, Stride<2>>, Shape<3, 4, 3, 2>>(2, 4).check_gradients();
}
