// SPDX-License-Identifier: Apache-2.0
// Memory of GPUs: whatever is made, copied or released on one device, the device that is current stays so.
#include <skein/device/cuda/memory.hpp>
#include <skein/device/cuda/pinned.hpp>
#include <skein/device/memory.hpp>

#include <catch2/catch.hpp>
#include <memory>
#include <thread>
#include <vector>

namespace sk = skein;

#if defined(SKEIN_CUDA_ON_HOST)
extern "C" long skein_pretend_waits();
#endif

TEST_CASE("memory of another GPU leaves the current one current") {
  if (sk::cuda::device_count() < 2) {
    WARN("skipped: it takes 2 GPUs");
    return;
  }
  const sk::cuda::UseDevice scope(sk::Cuda{1});
  const auto current = [] { return sk::cuda::current_device().ordinal; };
  const std::vector<float> host(64, 2.5f);
  std::vector<float> back(64);
  constexpr std::size_t bytes = 64 * sizeof(float);
  using Memory = sk::Memory<sk::Cuda>;

  void* there = Memory::allocate(bytes, sk::Cuda{0});
  CHECK(current() == 1);
  Memory::from_host(there, host.data(), bytes, sk::Cuda{0});
  CHECK(current() == 1);
  void* here = Memory::allocate(bytes, sk::Cuda{1});
  sk::Copy<sk::Cuda, sk::Cuda>::run(here, there, bytes, sk::Cuda{1}, sk::Cuda{0});
  CHECK(current() == 1);
  void* beside = Memory::allocate(bytes, sk::Cuda{0});
  Memory::copy(beside, there, bytes, sk::Cuda{0});
  CHECK(current() == 1);
  Memory::clear(there, bytes, sk::Cuda{0});
  CHECK(current() == 1);
  sk::cuda::synchronize(sk::Cuda{0});
  CHECK(current() == 1);
  Memory::to_host(back.data(), beside, bytes, sk::Cuda{0});
  CHECK(current() == 1);
  CHECK(back == host);
  Memory::to_host(back.data(), here, bytes, sk::Cuda{1});
  CHECK(back == host);
  Memory::release(there, bytes, sk::Cuda{0});
  CHECK(current() == 1);
  Memory::release(beside, bytes, sk::Cuda{0});
  Memory::release(here, bytes, sk::Cuda{1});
  const sk::cuda::Stream stream = [] {
    const sk::cuda::UseDevice other(sk::Cuda{0});
    return sk::cuda::Stream();
  }();
  const sk::cuda::StreamScope on(stream);
  CHECK(current() == 1);
}

TEST_CASE("an array of another GPU whose life ends here does not send the next array there") {
  if (sk::cuda::device_count() < 2) {
    WARN("skipped: it takes 2 GPUs");
    return;
  }
  auto other = std::make_unique<sk::Arena<float, sk::Cuda>>(16, sk::Cuda{1});
  const sk::cuda::UseDevice scope(sk::Cuda{0});
  other.reset();
  const sk::Arena<float, sk::Cuda> next(16, sk::Memory<sk::Cuda>::here());
  CHECK(next.where().ordinal == 0);
}

TEST_CASE("a thread's end waits for what its streams still run: others release and take again the memory that it used") {
  sk::Arena<float, sk::Cuda> x(1 << 20, sk::Memory<sk::Cuda>::here());
  sk::cuda::Event last;
  [[maybe_unused]] long waits = 0;
  std::thread([&] {
    for (int i = 0; i < 64; ++i) x.clear();
    last.record(sk::cuda::stream(x.where()));
#if defined(SKEIN_CUDA_ON_HOST)
    waits = skein_pretend_waits();
#endif
  }).join();
  CHECK(last.done());
#if defined(SKEIN_CUDA_ON_HOST)
  CHECK(skein_pretend_waits() > waits);  // there the destruction of a stream waits too: who asks is counted
#endif
}

TEST_CASE("an array that outlives its thread's streams is released all the same") {
  const auto free_bytes = [] {
    sk::cuda::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");  // what other tests released is free by then
    std::size_t bytes = 0, all = 0;
    sk::cuda::check(cudaMemGetInfo(&bytes, &all), "cudaMemGetInfo");
    return bytes;
  };
  [[maybe_unused]] const std::size_t before = free_bytes();
  std::thread([] {
    thread_local sk::Arena<float, sk::Cuda> last;  // made before the streams, so it ends behind them, as a static one does
    last = sk::Arena<float, sk::Cuda>(1 << 20);
  }).join();
#if defined(SKEIN_CUDA_ON_HOST)
  CHECK(free_bytes() == before);  // a GPU's pool keeps it
#endif
}

TEST_CASE("what a GPU does not do is said with what it may be") {
  CHECK_THROWS_WITH(sk::cuda::check(cudaErrorNotSupported, "cudaMallocAsync"),
                    Catch::Contains("cudaMallocAsync on Cuda 0") && Catch::Contains("lack memory pools"));
}

#if defined(SKEIN_CUDA_ON_HOST)
TEST_CASE("a release that the runtime refuses is not the fault of the next launch") {
  const auto refused = [] { return cudaGetLastError() != cudaSuccess; };
  using Memory = sk::Memory<sk::Cuda>;
  char* const p = static_cast<char*>(Memory::allocate(512));
  Memory::release(p + 64, 448);  // no array begins there
  CHECK(!refused());
  Memory::release(p, 512);
  CHECK(cudaEventDestroy(sk::cuda::Event().get()) == cudaSuccess);  // which its own destructor does once more
  CHECK(!refused());
  CHECK(cudaStreamDestroy(sk::cuda::Stream().get()) == cudaSuccess);
  CHECK(!refused());
  CHECK(cudaFreeHost(sk::cuda::Pinned<int>(4).data()) == cudaSuccess);
  CHECK(!refused());
}
#endif
