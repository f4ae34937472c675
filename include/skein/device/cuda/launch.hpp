// SPDX-License-Identifier: Apache-2.0
// The library's own kernels are function objects over an index, run by Thrust and CUB: for_each, for_each_row and reduce_into.
// The execution policy is a parameter, so the same function objects run on the host with Thrust's OpenMP or sequential system:
// that is how they are tested where there is no GPU. Function objects hold plain values and pointers; their call operators are
// constexpr or SKEIN_HOST_DEVICE.
#pragma once
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/system/cpp/execution_policy.h>
#include <thrust/system_error.h>
#include <thrust/transform_reduce.h>

#include <new>

#include "arguments.hpp"
#include "workspace.hpp"

#if defined(__CUDACC__)
#include <cub/device/device_reduce.cuh>
#include <thrust/system/cuda/execution_policy.h>
#elif defined(SKEIN_CUDA_ON_HOST)
// Only for tests: a CUDA runtime whose device is the host stands behind the API. It gets a launch as a closure, which it runs
// when the stream comes to it (with the device's memory open to the host), or keeps in a graph. Returns a cudaError_t.
extern "C" int skein_kernel_launch(cudaStream_t stream, void (*run)(void*), void* copy, void (*destroy)(void*));
#else
#error "skein/cuda.hpp holds kernels: compile this file with nvcc (name it .cu, or set its LANGUAGE to CUDA)"
#endif

namespace skein::inline SKEIN_ABI::cuda {

#if defined(__CUDACC__)
/// The execution policy of the calling thread's stream; calls do not wait.
inline auto policy() { return thrust::cuda::par_nosync.on(stream()); }
#else
namespace detail {
/// The calling thread's stream, where that is the host's: Thrust runs in closures that the stream is given.
struct StreamPolicy {};
template <class Function> void submit(Function f) {
  const auto run = [](void* p) { (*static_cast<Function*>(p))(); };
  const auto destroy = [](void* p) { delete static_cast<Function*>(p); };
  check(static_cast<cudaError_t>(skein_kernel_launch(stream(), run, new Function(std::move(f)), destroy)), "kernel launch");
}
}  // namespace detail
inline auto policy() { return detail::StreamPolicy{}; }
#endif

/// Is it the device's own policy? Others are of the host: tests run the same function objects by them.
template <class Policy> inline constexpr bool is_own_policy = std::is_same_v<Policy, decltype(policy())>;

namespace detail {
/// Thrust says what went wrong in exceptions of its own: one kind for all of the library's.
[[noreturn]] SKEIN_NOINLINE inline void fail_launch(const thrust::system_error& e, long n) {
  (void)cudaGetLastError();
  fail("kernel launch", text("over {} indices", n), "thrust::system_error", e.what(),
       hint_for(static_cast<cudaError_t>(e.code().value())));
}
[[noreturn]] SKEIN_NOINLINE inline void fail_algorithm(const std::exception& e, cudaError_t status) {
  (void)cudaGetLastError();
  fail("an algorithm of Thrust", {}, cudaGetErrorName(status), e.what(), hint_for(status));
}
/// An algorithm takes temporary memory, and there may be none.
template <class Algorithm> void run_algorithm(const Algorithm& algorithm) {
  try {
    algorithm();
  } catch (const thrust::system_error& e) {
    fail_algorithm(e, static_cast<cudaError_t>(e.code().value()));
  } catch (const std::bad_alloc& e) { fail_algorithm(e, cudaErrorMemoryAllocation); }
}
}  // namespace detail

/// f(policy) for algorithms of Thrust over memory of the device (sort, scan, fill), in the order of the calling thread's stream.
/// f is a function object; nothing waits, so what an algorithm returns is of no use there. Nothing runs while a step is replayed.
/// Throws DeviceError.
template <class Function> void with_policy(Function f) {
  if (replaying()) return;
#if defined(__CUDACC__)
  detail::run_algorithm([&] { f(policy()); });
#else
  detail::submit([f]() mutable { f(thrust::cpp::par); });
#endif
}

#if !defined(__CUDACC__)
namespace detail {
/// Even indices from the front, then odd ones from the back: a function object that reads what another index writes is seen.
template <class Function> struct OutOfOrder {
  Function f;
  long n;
  void operator()(long k) const { f(k < n - n / 2 ? 2 * k : 2 * (n - 1 - k) + 1); }
};
}  // namespace detail
#endif

/// f(i) for each i in [0, n), in any order, at the same time. Nothing is launched while a captured step is replayed.
template <class Policy, class Function> void for_each(const Policy& policy, long n, Function f) {
  if (n <= 0 || replaying()) return;
#if !defined(__CUDACC__)
  if constexpr (is_own_policy<Policy>)
    return detail::submit([=] { for_each(thrust::cpp::par, n, detail::OutOfOrder<Function>{f, n}); });
  else
#endif
    try {
      thrust::for_each_n(policy, thrust::counting_iterator<long>(0), n, f);
    } catch (const thrust::system_error& e) { detail::fail_launch(e, n); }
}
template <class Function> void for_each(long n, Function f) { for_each(policy(), n, f); }

/// The lanes that share a row: 32 of a warp on a GPU, one on the host. Reductions give every lane the result.
template <int Count> struct Lanes {
  static constexpr int count = Count;
  int index = 0;

#if defined(__CUDACC__)
  template <class T, class Op> __device__ T reduce(T value, Op op) const {
    for (int offset = Count / 2; offset > 0; offset /= 2) value = op(value, shuffle(value, offset));
    return value;
  }

 private:
  /// Trivially copyable values of any size, word by word.
  template <class T> __device__ static T shuffle(const T& value, int mask) {
    constexpr int words = (sizeof(T) + 3) / 4;
    union Bits {
      T value;
      unsigned word[words];
      __device__ Bits() {}
    } in, out;
    in.value = value;
    for (int i = 0; i < words; ++i) out.word[i] = __shfl_xor_sync(0xffffffffu, in.word[i], mask);
    return out.value;
  }
#endif
};
/// One lane: the host's.
template <> struct Lanes<1> {
  static constexpr int count = 1;
  static constexpr int index = 0;
  template <class T, class Op> constexpr T reduce(T value, Op) const { return value; }
};

namespace detail {
template <class Function> struct OneLane {
  Function f;
  constexpr void operator()(long row) const { f(row, Lanes<1>{}); }
};
#if defined(__CUDACC__)
inline constexpr int row_block = 128;  // threads; said to the compiler, which else keeps registers for 1024
template <class Function> __global__ void __launch_bounds__(row_block) each_row(long rows, Function f) {
  const long row = (blockIdx.x * static_cast<long>(blockDim.x) + threadIdx.x) / 32;
  if (row < rows) f(row, Lanes<32>{static_cast<int>(threadIdx.x % 32)});
}
#endif
}  // namespace detail

/// f(row, lanes) for each row in [0, rows): lanes.index goes through the row in steps of lanes.count.
template <class Function> void for_each_row(long rows, Function f) {
#if defined(__CUDACC__)
  if (rows <= 0 || replaying()) return;
  constexpr int block = detail::row_block;
  detail::each_row<<<static_cast<unsigned>((rows * 32 + block - 1) / block), block, 0, stream()>>>(rows, f);
  check(cudaGetLastError(), "kernel launch", [&] { return text("over {} rows", rows); });
#else
  for_each(policy(), rows, detail::OneLane<Function>{f});
#endif
}
template <class Policy, class Function> void for_each_row(const Policy& policy, long rows, Function f) {
  if constexpr (is_own_policy<Policy>) for_each_row(rows, f);
  else for_each(policy, rows, detail::OneLane<Function>{f});
}

/// Makes the scratch memory that reduce_into() of such takes for n values, which grows with a GPU's multiprocessors.
template <class T, class Function, class Op> void prepare_reduce([[maybe_unused]] long n, [[maybe_unused]] const Function& f,
                                                                 [[maybe_unused]] Op op, [[maybe_unused]] T initial) {
#if defined(__CUDACC__)
  const thrust::counting_iterator<long> first(0);
  std::size_t bytes = 0;
  check(cub::DeviceReduce::TransformReduce(nullptr, bytes, first, static_cast<T*>(nullptr), n, op, f, initial, stream()),
        "cub::DeviceReduce");
  workspace().reserve(bytes);
#endif
}
/// *out = op over f(0), f(1), ... f(n - 1) and `initial`: the same bits in every run. `out` is the device's; nothing waits. op is
/// associative and commutative but for rounding.
template <class Policy, class T, class Function, class Op>
void reduce_into(const Policy& policy, T* out, long n, Function f, Op op, T initial) {
  if (replaying()) return;
  const thrust::counting_iterator<long> first(0);
  if constexpr (is_own_policy<Policy>) {
#if defined(__CUDACC__)
    std::size_t bytes = 0;
    check(cub::DeviceReduce::TransformReduce(nullptr, bytes, first, out, n, op, f, initial, stream()), "cub::DeviceReduce");
    void* scratch = workspace().get(bytes ? bytes : 1);
    check(cub::DeviceReduce::TransformReduce(scratch, bytes, first, out, n, op, f, initial, stream()), "cub::DeviceReduce");
#else
    detail::submit([=] { *out = thrust::transform_reduce(thrust::cpp::par, first, first + n, f, initial, op); });
#endif
  } else {
    *out = thrust::transform_reduce(policy, first, first + n, f, initial, op);
  }
}
template <class T, class Function, class Op> void reduce_into(T* out, long n, Function f, Op op, T initial) {
  reduce_into(policy(), out, n, f, op, initial);
}

}  // namespace skein::inline SKEIN_ABI::cuda
