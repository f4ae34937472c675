// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <skein/device/cuda/memory.hpp>
#include <skein/nn/conv_transpose2d.hpp>
#include <skein/ops/cuda/conv_transpose2d.hpp>

#include "support/device_harness.hpp"

namespace nn = skein::nn;
using namespace skein;
using support::agree;

TEMPLATE_TEST_CASE("ConvTranspose2d on Cuda is ConvTranspose2d on the Cpu", "[cuda]", float, double) {
  for (const long batch : {0L, 1L, 5L}) {
    agree<nn::ConvTranspose2d<6, Kernel<2>, Stride<2>>, Shape<5, 4, 3>, TestType>({.batch = batch});
    agree<nn::ConvTranspose2d<8, Kernel<3>, Stride<2>, Padding<1>, OutputPadding<1>, NoBias>, Shape<4, 5, 6>, TestType>(
        {.batch = batch});
    agree<nn::ConvTranspose2d<6, Kernel<3>, Groups<3>, Dilation<2>, Padding<1>>, Shape<4, 5, 6>, TestType>({.batch = batch});
  }
  agree<nn::ConvTranspose2d<6, Kernel<4>, Stride<2>, Padding<1>>, Shape<5, 4, 3>, TestType>(
      {.batch = 4, .wants_dx = false, .accumulate = true});
}
