// SPDX-License-Identifier: Apache-2.0
#include <skein/device/cuda/plain_kernels.hpp>
#include <skein/nn/rms_norm.hpp>
#include <skein/ops/cuda/row_normalize.hpp>

#include "../../support/device_harness.hpp"

namespace sk = skein;
namespace nn = skein::nn;
using support::agree;

TEMPLATE_TEST_CASE("RmsNorm on the GPU agrees with the Cpu", "[nn][cuda]", float, double) {
  const sk::cuda::PlainKernels kernels(GENERATE(false, true));
  for (const long batch : {1L, 5L, 33L}) {
    agree<nn::RmsNorm<>, sk::Shape<7>, TestType>({.batch = batch});
    agree<nn::RmsNorm<sk::Epsilon<1, 100>>, sk::Shape<100>, TestType>({.batch = batch, .accumulate = true});
    agree<nn::RmsNorm<>, sk::Shape<64>, TestType>({.batch = batch, .phase = nn::Phase::evaluation});
    agree<nn::RmsNorm<>, sk::Shape<3, 4, 5>, TestType>({.batch = batch, .wants_dx = false});
    agree<nn::RmsNorm<>, sk::Shape<2, 3, 16>, TestType>({.batch = batch, .accumulate = true});
  }
}

TEST_CASE("RmsNorm on the GPU takes 16-bit samples, and has no workspace of the host's", "[nn][cuda]") {
  using L = nn::Fused<nn::RmsNorm<>, sk::Cuda>;
  STATIC_REQUIRE(nn::needs_of<L>({1, {40}}).workspace == 0);
  STATIC_REQUIRE(nn::computes_in<L, sk::Cuda, sk::bf16>);
  STATIC_REQUIRE_FALSE(nn::computes_in<nn::RmsNorm<>, sk::Cpu, sk::bf16>);
}
