// SPDX-License-Identifier: Apache-2.0
#include <skein/ops/cuda/transpose.hpp>

#include <catch2/catch.hpp>

#include "../../support/device_array.hpp"

namespace sk = skein;
using support::DeviceArray;

TEMPLATE_TEST_CASE("Transposed copies on the GPU are exact, and leave gaps alone", "[ops][cuda]", float, double, sk::bf16) {
  struct Case {
    long rows, columns, pitch, to_pitch;
  };
  for (const Case& c : {Case{1, 1, 1, 1}, Case{4, 4, 4, 4}, Case{5, 10, 16, 8}, Case{33, 17, 32, 48}, Case{7, 3, 3, 7},
                        Case{16, 40, 40, 16}, Case{64, 64, 64, 64}, Case{65, 130, 131, 67}}) {
    std::vector<TestType> from;
    for (long i = 0; i < c.rows * c.pitch; ++i) from.push_back(static_cast<TestType>(static_cast<float>(i % 251)));
    std::vector<TestType> expected(static_cast<std::size_t>(c.columns * c.to_pitch), TestType(9.0f));
    const DeviceArray<TestType> there(from);
    const std::vector<TestType> nines = expected;
    sk::ops::transpose<sk::Cpu>(c.rows, c.columns, from.data(), c.pitch, expected.data(), c.to_pitch);
    for (const bool plain : {false, true}) {
      INFO(c.rows << " x " << c.columns << (plain ? ", plain" : ""));
      const sk::cuda::PlainKernels kernels(plain);
      DeviceArray<TestType> to(nines);
      sk::ops::transpose<sk::Cuda>(c.rows, c.columns, there.data(), c.pitch, to.data(), c.to_pitch);
      const std::vector<TestType> got = to.host();
      CHECK(std::vector<float>(got.begin(), got.end()) == std::vector<float>(expected.begin(), expected.end()));
    }
  }
}

TEST_CASE("A transposed copy on the GPU is added to what is there, in the type of that", "[ops][cuda]") {
  const long rows = 70, columns = 5;
  std::vector<sk::bf16> from;
  for (long i = 0; i < rows * columns; ++i) from.push_back(static_cast<sk::bf16>(static_cast<float>(i % 100)));
  const DeviceArray<sk::bf16> there(from);
  for (const bool plain : {false, true}) {
    const sk::cuda::PlainKernels kernels(plain);
    DeviceArray<float> to(std::vector<float>(static_cast<std::size_t>(columns * rows), 0.5f));
    sk::ops::cuda::transpose<true>(rows, columns, there.data(), columns, to.data(), rows);
    const std::vector<float> got = to.host();
    for (long i = 0; i < rows * columns; ++i)
      CHECK(got[static_cast<std::size_t>(i % columns * rows + i / columns)] == 0.5f + static_cast<float>(i % 100));
  }
}
