// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <cmath>
#include <numeric>
#include <vector>

#include <skein/device/cuda/launch_blocks.hpp>
#include <skein/device/cuda/memory.hpp>

#include "support/on_device.hpp"

namespace sk = skein;

namespace {
/// Turns each block of 64 values round, through shared memory, and adds how often a thread was called.
struct Reverse {
  static constexpr int threads = 64;
  struct Own {
    int calls = 0;
  };
  const int* from;
  int* to;
  std::size_t bytes;
  SKEIN_HOST_DEVICE int steps() const { return 3; }
  std::size_t shared_bytes() const { return bytes; }
  SKEIN_HOST_DEVICE void operator()(int step, long block, int thread, Own& own, void* shared) const {
    int* all = static_cast<int*>(shared);
    ++own.calls;
    if (step == 0) all[thread] = from[block * threads + thread];
    if (step == 2) to[block * threads + thread] = all[threads - 1 - thread] + 1000 * own.calls;
  }
};
/// Reads what nobody has written.
struct Unwritten {
  static constexpr int threads = 1;
  struct Own {};
  float* to;
  SKEIN_HOST_DEVICE int steps() const { return 1; }
  std::size_t shared_bytes() const { return sizeof(float); }
  SKEIN_HOST_DEVICE void operator()(int, long block, int, Own&, void* shared) const { to[block] = *static_cast<float*>(shared); }
};
}  // namespace

TEST_CASE("threads of a block go in step, share memory and keep what is their own", "[cuda]") {
  std::vector<int> values(640);
  std::iota(values.begin(), values.end(), 0);
  support::OnDevice<int> from(values);
  for (const std::size_t bytes : {std::size_t(256), sk::cuda::most_shared_bytes}) {
    INFO(bytes << " bytes of shared memory");
    support::OnDevice<int> to(std::vector<int>(640, -1));
    sk::cuda::for_each_block(10, Reverse{from.data(), to.data(), bytes});
    sk::cuda::for_each_block(0, Reverse{from.data(), to.data(), bytes});
    const std::vector<int> result = to.values();
    for (int i = 0; i < 640; ++i) CHECK(result[static_cast<std::size_t>(i)] == 3000 + i / 64 * 64 + 63 - i % 64);
  }
}

TEST_CASE("what an algorithm of Thrust throws is an error of this library, with what helps", "[cuda]") {
  using sk::cuda::detail::run_algorithm;
  CHECK_THROWS_AS(run_algorithm([] { throw std::bad_alloc(); }), sk::DeviceError);
  CHECK_THROWS_WITH(run_algorithm([] { throw std::bad_alloc(); }),
                    Catch::Contains("an algorithm of Thrust on Cuda 0") &&
                        Catch::Contains("(cudaErrorMemoryAllocation): take a smaller batch"));
  const auto sort = [] { throw thrust::system_error(cudaErrorInvalidDevice, thrust::generic_category(), "merge sort"); };
  CHECK_THROWS_AS(run_algorithm(sort), sk::DeviceError);
  CHECK_THROWS_WITH(run_algorithm(sort), Catch::Contains("merge sort") && Catch::Contains("(cudaErrorInvalidDevice)"));
}

#if defined(SKEIN_CUDA_ON_HOST)
TEST_CASE("shared memory is no zeros: what reads before it writes is found without a GPU", "[cuda]") {
  support::OnDevice<float> to(std::vector<float>(2, 0.0f));
  sk::cuda::for_each_block(2, Unwritten{to.data()});
  for (const float value : to.values()) CHECK(std::isnan(value));
}
#endif
