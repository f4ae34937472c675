// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <skein/device/cuda/memory.hpp>
#include <skein/nn/upsample.hpp>
#include <skein/ops/cuda/for_each.hpp>

#include "support/device_harness.hpp"

namespace nn = skein::nn;
using skein::Bilinear;
using skein::Shape;
using support::agree;

TEMPLATE_TEST_CASE("Upsample on Cuda is Upsample on the Cpu", "[cuda]", float, double) {
  for (const long batch : {0L, 1L, 5L}) {
    agree<nn::Upsample<2>, Shape<5, 4, 3>, TestType>({.batch = batch});
    agree<nn::Upsample<2, Bilinear>, Shape<5, 4, 3>, TestType>({.batch = batch});
    agree<nn::Upsample<3, Bilinear>, Shape<1, 6, 8>, TestType>({.batch = batch});
  }
  STATIC_REQUIRE(nn::computes_in<nn::Upsample<2>, skein::Cuda, skein::bf16>);
}
