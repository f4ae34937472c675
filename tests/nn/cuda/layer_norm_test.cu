// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/cuda/layer_norm.hpp>

#include "../../support/device_harness.hpp"

namespace sk = skein;
namespace nn = skein::nn;
using support::agree;

TEMPLATE_TEST_CASE("LayerNorm on the GPU agrees with the Cpu", "[nn][cuda]", float, double) {
  for (const long batch : {1L, 5L, 33L}) {
    agree<nn::LayerNorm<>, sk::Shape<7>, TestType>({.batch = batch});
    agree<nn::LayerNorm<>, sk::Shape<100>, TestType>({.batch = batch, .accumulate = true});
    agree<nn::LayerNorm<sk::Epsilon<1, 10>>, sk::Shape<64>, TestType>({.batch = batch, .phase = nn::Phase::evaluation});
    agree<nn::LayerNorm<>, sk::Shape<3, 4, 5>, TestType>({.batch = batch, .wants_dx = false});
    agree<nn::LayerNorm<>, sk::Shape<2, 3, 16>, TestType>({.batch = batch, .accumulate = true});
  }
}

TEST_CASE("LayerNorm on the GPU has no workspace of the host's", "[nn][cuda]") {
  using L = nn::Fused<nn::LayerNorm<>, sk::Cuda>;
  STATIC_REQUIRE(nn::needs_of<L>({1, {40}}).workspace == 0);
  STATIC_REQUIRE(nn::needs_of<nn::LayerNorm<>>({1, {40}}).workspace == 80);
  STATIC_REQUIRE(nn::computes_in<L, sk::Cuda, sk::bf16>);
  STATIC_REQUIRE_FALSE(nn::computes_in<nn::LayerNorm<>, sk::Cpu, sk::bf16>);
}
