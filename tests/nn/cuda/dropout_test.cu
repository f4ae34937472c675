// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/dropout.hpp>
#include <skein/ops/cuda/dropout.hpp>

#include "../../support/device_harness.hpp"

namespace sk = skein;
namespace nn = skein::nn;
using support::agree;

TEMPLATE_TEST_CASE("Dropout on the GPU drops what the Cpu drops, forward and backward", "[nn][cuda]", float, double) {
  for (const std::uint64_t key : {1ull, 77ull})
    for (const long batch : {1L, 5L, 40L}) {
      agree<nn::Dropout<>, sk::Shape<10>, TestType>(
          {.batch = batch, .key = key, .global_first = 12345, .roundings = support::Roundings::exact});
      agree<nn::Dropout<sk::Rate<1, 10>>, sk::Shape<3, 3, 5>, TestType>(
          {.batch = batch, .key = key, .roundings = support::Roundings::exact});
      agree<nn::Dropout<>, sk::Shape<128>, TestType>({.batch = batch, .phase = nn::Phase::evaluation, .key = key});
      agree<nn::Dropout<sk::Rate<1, 1>>, sk::Shape<10>, TestType>({.batch = batch, .wants_dx = false, .key = key});
    }
}
