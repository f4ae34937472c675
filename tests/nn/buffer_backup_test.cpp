// SPDX-License-Identifier: Apache-2.0
#include <skein/nn/buffer_backup.hpp>

#include <limits>
#include <vector>

#include <catch2/catch.hpp>

namespace sk = skein;

TEST_CASE("buffers are given back as they were kept", "[nn]") {
  const std::vector<float> before{1, 2, 3};
  std::vector<float> values = before;
  const sk::DeviceSpan<float> buffers(values.data(), values.size());
  sk::nn::BufferBackup<float, sk::Cpu, false> backup;
  backup.reserve(buffers, {});
  backup.keep(buffers);
  values.assign(3, 7);
  backup.give_back(buffers);
  CHECK(values == before);
}

TEST_CASE("buffers are given back at the end of a step that was skipped and whose loss is not finite", "[nn]") {
  std::vector<float> values{1, 2};
  const sk::DeviceSpan<float> buffers(values.data(), values.size());
  sk::nn::BufferBackup<float, sk::Cpu, true> backup;
  backup.reserve(buffers, {});
  backup.keep(buffers);
  const float finite[1] = {3}, infinite[1] = {std::numeric_limits<float>::infinity()};
  for (const bool skip : {false, true})
    for (const float* loss : {finite, infinite}) {
      sk::ops::StepScale scale{};
      scale.skip = skip;
      values = {7, 8};
      backup.give_back_if_skipped(buffers, &scale, loss);
      CHECK((values == std::vector<float>{1, 2}) == (skip && loss == infinite));
    }
}
