// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <skein/device/cuda/memory.hpp>
#include <skein/nn/cuda/conv2d.hpp>
#include <skein/nn/fused/conv_relu_pool.hpp>

#include "support/device_harness.hpp"

namespace nn = skein::nn;
using skein::Shape;
using skein::Dilation;
using skein::Groups;
using skein::Kernel;
using skein::NoBias;
using skein::Padding;
using skein::Stride;
using support::agree;

namespace {
template <class Convolution> using Rectified = nn::ConvReluPool<Convolution, true, nn::NoPool>;

template <class Convolution, class In> void agrees() {
  for (const long batch : {1L, 3L, 8L}) {
    agree<Convolution, In, float>({.batch = batch});
    agree<Convolution, In, double>({.batch = batch});
    agree<Rectified<Convolution>, nn::DeviceConv2d<Convolution, true>, In, float>({.batch = batch});
    agree<Rectified<Convolution>, nn::DeviceConv2d<Convolution, true>, In, double>({.batch = batch});
  }
  agree<Convolution, In, float>({.batch = 5, .wants_dx = false, .accumulate = true});
  agree<Convolution, In, double>({.batch = 2, .accumulate = true});
  agree<Rectified<Convolution>, nn::DeviceConv2d<Convolution, true>, In, float>(
      {.batch = 5, .wants_dx = false, .accumulate = true});
  agree<Convolution, In, float>({.batch = 0});
}
}  // namespace

TEST_CASE("Conv2d on Cuda is Conv2d on the Cpu: windows, strides, paddings", "[cuda]") {
  agrees<nn::Conv2d<6, Kernel<5>, Padding<2>>, Shape<12, 12, 1>>();
  agrees<nn::Conv2d<16, Kernel<5>>, Shape<9, 8, 6>>();
  agrees<nn::Conv2d<7, Kernel<3>, Stride<2>, Padding<1>, NoBias>, Shape<11, 9, 5>>();
  agrees<nn::Conv2d<20, Kernel<4>, Stride<3>, Padding<2>>, Shape<10, 13, 3>>();
}
TEST_CASE("Conv1d and Conv3d on Cuda are those on the Cpu", "[cuda]") {
  for (const long batch : {0L, 1L, 3L}) {
    agree<nn::Conv1d<5, Kernel<4>, Stride<2>, Padding<1>>, Shape<11, 3>, float>({.batch = batch});
    agree<nn::Conv1d<6, Kernel<3>, Dilation<2>, Groups<3>, NoBias>, Shape<12, 6>, double>({.batch = batch});
    agree<nn::Conv3d<4, Kernel<3>, Padding<1>>, Shape<4, 3, 5, 2>, float>({.batch = batch});
    agree<nn::Conv3d<6, Kernel<2>, Stride<2>, Groups<2>, NoBias>, Shape<4, 5, 4, 4>, double>({.batch = batch});
  }
  agree<nn::Conv1d<5, Kernel<3>>, Shape<9, 4>, float>({.batch = 4, .wants_dx = false, .accumulate = true});
  agree<nn::Conv3d<5, Kernel<2>>, Shape<3, 4, 3, 4>, float>({.batch = 4, .wants_dx = false, .accumulate = true});
}
TEST_CASE("Conv2d on Cuda is Conv2d on the Cpu: 1 x 1, dilation, groups", "[cuda]") {
  agrees<nn::Conv2d<33, Kernel<1>>, Shape<5, 3, 17>>();
  agrees<nn::Conv2d<8, Kernel<1>, Stride<2>, NoBias>, Shape<7, 6, 9>>();
  agrees<nn::Conv2d<8, Kernel<3>, Dilation<2>, Padding<2>>, Shape<9, 8, 6>>();
  agrees<nn::Conv2d<12, Kernel<3>, Groups<3>, NoBias>, Shape<8, 7, 6>>();
  agrees<nn::Conv2d<10, Kernel<3>, Groups<10>, Stride<2>, Padding<1>>, Shape<8, 9, 10>>();
}
