// SPDX-License-Identifier: Apache-2.0
// Dropout on the GPU: the Cpu's masks bit for bit, key and first sample by value or out of the step's values in device memory.
#include <skein/ops/cuda/dropout.hpp>

#include <catch2/catch.hpp>

#include "../../support/device_array.hpp"

namespace sk = skein;
namespace ops = skein::ops;
using support::DeviceArray;

TEMPLATE_TEST_CASE("Dropout on the GPU has the Cpu's masks, bit for bit", "[ops][cuda]", float, double) {
  for (const long n : {1L, 3L, 8L, 63L, 64L, 65L, 200L})
    for (const long pitch : {n, n + 5, (n + 15) / 16 * 16})
      for (const double rate : {0.0, 0.1, 0.5, 0.999, 1.0}) {
        const ops::DropoutShape shape{3, n, pitch, 0x123456789abcdefull, 0xfffffffeull};  // samples across 2^32
        std::vector<TestType> x(static_cast<std::size_t>(3 * pitch)), y(x.size(), 7);
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<TestType>(i % 17) - 8;
        ops::dropout<sk::Cpu>(shape, rate, x.data(), y.data());
        DeviceArray<TestType> there(x, n % 2), in_place(x);
        DeviceArray<TestType> to(x.size(), TestType(7));
        ops::dropout<sk::Cuda>(shape, rate, there.data(), to.data());
        ops::dropout<sk::Cuda>(shape, rate, in_place.data(), in_place.data());
        CHECK(to.host() == y);
        CHECK(in_place.host() == y);
      }
}

TEST_CASE("Dropout on the GPU reads a step's key and first sample in device memory", "[ops][cuda]") {
  const long n = 50, pitch = 64;
  const std::vector<float> x(4 * 64, 1.0f);
  const DeviceArray<float> there(x);
  for (const std::uint64_t key : {5ull, 6ull}) {
    ops::DropoutShape here{4, n, pitch, sk::random_key(key, 99), 1000 + 3};
    std::vector<float> y(x.size());
    ops::dropout<sk::Cpu>(here, 0.3, x.data(), y.data());
    sk::Arena<ops::StepValues, sk::Cuda> values(1);
    const ops::StepValues now{key, 1000, 1};
    sk::Copy<sk::Cuda, sk::Cpu>::run(values.data(), &now, sizeof now);
    ops::DropoutShape shape{4, n, pitch, 0, 3};
    shape.values = values.data();
    shape.purpose = 99;
    DeviceArray<float> to(x.size(), 7.0f);
    ops::dropout<sk::Cuda>(shape, 0.3, there.data(), to.data());
    CHECK(to.host() == y);
  }
}

TEST_CASE("Dropout on the GPU of 16-bit values drops the same ones", "[ops][cuda]") {
  const ops::DropoutShape shape{3, 40, 48, 11, 2};
  const std::vector<float> x(3 * 48, 1.0f);
  std::vector<float> y(x.size());
  ops::dropout<sk::Cpu>(shape, 0.5, x.data(), y.data());
  DeviceArray<sk::bf16> there(std::vector<sk::bf16>(x.size(), sk::bf16(1.0f)));
  ops::dropout<sk::Cuda>(shape, 0.5, there.data(), there.data());
  const std::vector<sk::bf16> got = there.host();
  CHECK(std::vector<float>(got.begin(), got.end()) == y);
}
