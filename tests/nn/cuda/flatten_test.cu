// SPDX-License-Identifier: Apache-2.0
// Slice and Reshape on the GPU beside the Cpu: columns of the last extent, and values that move to rows of another pitch.
#include <catch2/catch.hpp>

#include <skein/device/cuda/memory.hpp>
#include <skein/nn/reshape.hpp>
#include <skein/nn/slice.hpp>
#include <skein/ops/cuda/elementwise.hpp>
#include <skein/ops/cuda/for_each.hpp>

#include "support/device_harness.hpp"

namespace nn = skein::nn;
using skein::Shape;
using support::agree;

namespace {
template <class L, class In> void agrees() {
  for (const long batch : {0L, 1L, 5L}) agree<L, In, float>({.batch = batch});
  agree<L, In, double>({.batch = 3});
  agree<L, In, float>({.batch = 2, .wants_dx = false});
}
}  // namespace

TEST_CASE("Slice and Reshape on Cuda are those of the Cpu", "[nn][cuda]") {
  agrees<nn::Slice<2, 5>, Shape<3, 4, 7>>();
  agrees<nn::Slice<0, 9>, Shape<33>>();
  agrees<nn::Reshape<35, 3>, Shape<105>>();
  agrees<nn::Reshape<105>, Shape<3, 5, 7>>();
}
