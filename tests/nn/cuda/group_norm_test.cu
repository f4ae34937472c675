// SPDX-License-Identifier: Apache-2.0
#include <skein/device/cuda/plain_kernels.hpp>
#include <skein/nn/group_norm.hpp>
#include <skein/ops/cuda/row_normalize.hpp>

#include "../../support/device_harness.hpp"

namespace sk = skein;
namespace nn = skein::nn;
using support::agree;

TEMPLATE_TEST_CASE("GroupNorm on the GPU agrees with the Cpu", "[nn][cuda]", float, double) {
  const sk::cuda::PlainKernels kernels(GENERATE(false, true));
  for (const long batch : {1L, 5L, 33L}) {
    agree<nn::GroupNorm<3>, sk::Shape<21>, TestType>({.batch = batch});
    agree<nn::GroupNorm<2>, sk::Shape<3, 4, 6>, TestType>({.batch = batch, .accumulate = true});
    agree<nn::GroupNorm<4, sk::Epsilon<1, 10>>, sk::Shape<5, 4, 32>, TestType>({.batch = batch});
    agree<nn::GroupNorm<1>, sk::Shape<9, 8>, TestType>({.batch = batch, .phase = nn::Phase::evaluation});
    agree<nn::GroupNorm<8>, sk::Shape<6, 6, 8>, TestType>({.batch = batch, .wants_dx = false});
  }
}

TEST_CASE("GroupNorm on the GPU takes 16-bit samples, and has no workspace of the host's", "[nn][cuda]") {
  using L = nn::Fused<nn::GroupNorm<2>, sk::Cuda>;
  STATIC_REQUIRE(nn::needs_of<L>({1, {40}}).workspace == 0);
  STATIC_REQUIRE(nn::computes_in<L, sk::Cuda, sk::bf16>);
  STATIC_REQUIRE_FALSE(nn::computes_in<nn::GroupNorm<2>, sk::Cpu, sk::bf16>);
}
