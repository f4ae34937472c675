// SPDX-License-Identifier: Apache-2.0
// The sum of the workers' gradients, in worker 0's: each worker but the first has an array of its own.
#pragma once
#include "../../core/workers.hpp"
#include "../../device/device.hpp"
#include "../../plan/program.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Adds the other workers' gradients of the parameters [begin, end) to those of worker 0.
template <class Memory> void add_workers(Memory& memory, long begin, long end) {
  if constexpr (on_host<typename Memory::Device>) {  // a device has one worker
    auto* const to = memory.gradients(0);
    for (int w = 1; w < memory.threads(); ++w) {
      const auto* const from = memory.gradients(w);
      for (long i = begin; i < end; ++i) to[i] += from[i];
    }
  }
}
/// Adds up this worker's part of all summed gradients. Called by every worker, after all have finished their gradients.
template <class Memory> void sum_workers(Memory& memory, const Worker& w) {
  if (w.count == 1) return;
  for (const plan::Range& r : memory.summed_ranges()) {
    const auto [lo, hi] = w.slice(r.end - r.begin, 16);
    add_workers(memory, r.begin + lo, r.begin + hi);
  }
}

}  // namespace skein::inline SKEIN_ABI::nn
