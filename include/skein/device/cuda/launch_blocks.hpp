// SPDX-License-Identifier: Apache-2.0
// for_each_block: own kernels whose threads work on a piece together, through memory that a block of them shares. A function
// object tells what one thread does in one step; between steps the threads of a block wait for one another. On the host a block
// is a loop over its threads, step by step: that is how such kernels are tested where there is no GPU.
#pragma once
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "launch.hpp"

namespace skein::inline SKEIN_ABI::cuda {

/// Bytes of shared memory that a block may have on every GPU of compute capability 8.0 or more.
inline constexpr std::size_t most_shared_bytes = 96 * 1024;

#if defined(__CUDACC__)
namespace detail {
template <class Function> __global__ void __launch_bounds__(Function::threads) each_block(Function f) {
  extern __shared__ __align__(16) unsigned char shared_of_block[];
  typename Function::Own own{};
  const int steps = f.steps();
  for (int step = 0; step < steps; ++step) {
    if (step > 0) __syncthreads();
    f(step, static_cast<long>(blockIdx.x), static_cast<int>(threadIdx.x), own, shared_of_block);
  }
}
}  // namespace detail
#else
namespace detail {
template <class Function> struct BlockOfThreads {
  Function f;
  void operator()(long block) const {
    std::vector<typename Function::Own> own(static_cast<std::size_t>(Function::threads));
    const std::size_t units = f.shared_bytes() / sizeof(std::max_align_t) + 1;
    const auto shared = std::make_unique_for_overwrite<std::max_align_t[]>(units);
    std::memset(shared.get(), 0xff, units * sizeof(std::max_align_t));  // NaNs, as a GPU promises no value
    for (int step = 0; step < f.steps(); ++step)
      for (int i = 0; i < Function::threads; ++i) {  // from the front or the back: who reads what another writes is seen
        const int thread = (step + block) % 2 == 0 ? i : Function::threads - 1 - i;
        f(step, block, thread, own[static_cast<std::size_t>(thread)], shared.get());
      }
  }
};
}  // namespace detail
#endif

/// f(step, block, thread, own, shared) for each block in [0, blocks) and each of its Function::threads threads, step by step: all
/// threads of a block have done a step, and what they wrote to `shared` is seen, before one of them begins the next. f.steps()
/// says how many there are; `own` is a Function::Own, of one thread, kept between its steps; shared has f.shared_bytes() bytes,
/// at most most_shared_bytes, aligned to 16, with no value in them.
template <class Function> void for_each_block(long blocks, const Function& f) {
  if (blocks <= 0 || replaying()) return;
#if defined(__CUDACC__)
  const auto said = [&] { return text("over {} blocks", blocks); };
  const auto bytes = f.shared_bytes();
  if (bytes > 48 * 1024)  // more is to be asked for; the most, since a thread that asks for less would lower another's limit
    check(cudaFuncSetAttribute(detail::each_block<Function>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(most_shared_bytes)),
          "cudaFuncSetAttribute", said);
  detail::each_block<<<static_cast<unsigned>(blocks), Function::threads, bytes, stream()>>>(f);
  check(cudaGetLastError(), "kernel launch", said);
#else
  for_each(policy(), blocks, detail::BlockOfThreads<Function>{f});
#endif
}

}  // namespace skein::inline SKEIN_ABI::cuda
