// SPDX-License-Identifier: Apache-2.0
// Memory of a GPU: cudaMallocAsync on the device's pool, which keeps what is freed, so that the second allocation of a size costs
// no call of the driver. Allocation and release are ordered by the calling thread's stream: an array is used and released on the
// thread (or behind an event of it, or after its end) that made it. Copies to and from the host block; those within a device do
// not. The device that is current stays so: arrays of other devices are released wherever their owner's life ends.
#pragma once
#include <cstdint>
#include <mutex>

#include "../copy.hpp"
#include "stream.hpp"

namespace skein::inline SKEIN_ABI {

namespace cuda::detail {
/// Once a device: the pool keeps freed memory instead of giving it back at the next synchronisation.
inline void keep_freed_memory(Cuda device) {
  static std::array<std::once_flag, most_devices> once;
  std::call_once(once[index_of(device)], [&] {
    int has_pools = 0;
    check(cudaDeviceGetAttribute(&has_pools, cudaDevAttrMemoryPoolsSupported, device.ordinal), "cudaDeviceGetAttribute");
    if (!has_pools) check(cudaErrorNotSupported, "cudaMallocAsync");
    cudaMemPool_t pool{};
    check(cudaDeviceGetDefaultMemPool(&pool, device.ordinal), "cudaDeviceGetDefaultMemPool");
    std::uint64_t all = ~std::uint64_t{0};
    check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all), "cudaMemPoolSetAttribute");
  });
}
}  // namespace cuda::detail

template <> struct Memory<Cuda> {
  static constexpr std::size_t alignment = 256;
  /// The GPU that is current: a rank's own where a communicator has chosen it.
  static Cuda here() { return cuda::current_device(); }
  static void make_current(Cuda where) { cuda::use(where); }
  using Current = cuda::UseDevice;
  /// Zeroed, in the order of the calling thread's stream. Throws DeviceError.
  static void* allocate(std::size_t bytes, Cuda where = {}) {
    const cuda::UseDevice there(where);
    cudaStream_t on = cuda::stream(where);
    cuda::detail::keep_freed_memory(where);
    void* p = nullptr;
    cuda::check(cudaMallocAsync(&p, bytes ? bytes : 1, on), "cudaMallocAsync", cuda::Bytes{bytes});
    if (bytes) cuda::check(cudaMemsetAsync(p, 0, bytes, on), "cudaMemsetAsync", cuda::Bytes{bytes});
    return p;
  }
  static void release(void* p, std::size_t, Cuda where = {}) noexcept {
    if (cuda::detail::streams_ended) return cuda::ignore(cudaFree(p));  // of static duration; the streams had been waited for
    try {
      const cuda::UseDevice there(where);
      cuda::ignore(cudaFreeAsync(p, cuda::stream(where)));
    } catch (const Error&) {  // a device that has failed: its memory is gone with it
    }
  }
  static void clear(void* p, std::size_t bytes, Cuda where = {}) {
    if (!bytes) return;
    const cuda::UseDevice there(where);
    cuda::check(cudaMemsetAsync(p, 0, bytes, cuda::stream(where)), "cudaMemsetAsync", cuda::Bytes{bytes});
  }
  /// Within the device, in stream order. The ranges do not overlap.
  static void copy(void* to, const void* from, std::size_t bytes, Cuda where = {}) {
    if (!bytes) return;
    const cuda::UseDevice there(where);
    cuda::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, cuda::stream(where)), "cudaMemcpyAsync",
                cuda::Bytes{bytes});
  }
  /// From the host, blocking: `from` may be changed when it returns.
  static void from_host(void* to, const void* from, std::size_t bytes, Cuda where = {}) {
    if (!bytes) return;
    const cuda::UseDevice there(where);
    cudaStream_t on = cuda::stream(where);
    cuda::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, on), "cudaMemcpyAsync (host to device)",
                cuda::Bytes{bytes});
    cuda::check(cudaStreamSynchronize(on), "cudaStreamSynchronize");
  }
  /// To the host, blocking, behind all that the calling thread's stream was given before.
  static void to_host(void* to, const void* from, std::size_t bytes, Cuda where = {}) {
    if (!bytes) return;
    const cuda::UseDevice there(where);
    cudaStream_t on = cuda::stream(where);
    cuda::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, on), "cudaMemcpyAsync (device to host)",
                cuda::Bytes{bytes});
    cuda::check(cudaStreamSynchronize(on), "cudaStreamSynchronize");
  }
};

template <> struct Copy<Cuda, Cpu> {
  static void run(void* to, const void* from, std::size_t bytes, Cuda where = {}, Cpu = {}) {
    Memory<Cuda>::from_host(to, from, bytes, where);
  }
};
template <> struct Copy<Cpu, Cuda> {
  static void run(void* to, const void* from, std::size_t bytes, Cpu = {}, Cuda where = {}) {
    Memory<Cuda>::to_host(to, from, bytes, where);
  }
};
/// Between GPUs, or within one; blocking, so that neither side has to know the other's stream.
template <> struct Copy<Cuda, Cuda> {
  static void run(void* to, const void* from, std::size_t bytes, Cuda there = {}, Cuda here = {}) {
    if (!bytes) return;
    const cuda::UseDevice first(there);
    cudaStream_t made = cuda::stream(there);
    cuda::Event ready;  // the target was made and cleared in the order of the other stream
    ready.record(made);
    cudaStream_t on = cuda::stream(here);
    ready.hold(on);
    cuda::check(cudaMemcpyPeerAsync(to, there.ordinal, from, here.ordinal, bytes, on), "cudaMemcpyPeerAsync", cuda::Bytes{bytes});
    cuda::check(cudaStreamSynchronize(on), "cudaStreamSynchronize");
  }
};

}  // namespace skein::inline SKEIN_ABI
