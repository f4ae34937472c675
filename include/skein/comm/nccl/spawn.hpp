// SPDX-License-Identifier: Apache-2.0
// Several GPUs in one process: a rank a GPU, each a thread of this process, with NCCL between them.
#pragma once
#include "../thread/spawn.hpp"
#include "nccl_comm.hpp"

namespace skein::inline SKEIN_ABI {

/// Runs function(NcclComm&) on a rank for each of the devices; world.where() is the rank's. The calling thread is rank 0. An
/// exception of one rank ends all, as spawn(n, function) has it. Throws ArgumentError where a device is not visible.
template <class Function> requires std::invocable<Function&, NcclComm&>
void spawn(const LocalDevices& devices, Function&& function, const NcclOptions& options = {}) {
  const std::vector<int> ordinals = devices.resolve(cuda::device_count());
  CommOptions of_threads;
  of_threads.deadline = options.deadline;
  spawn(static_cast<int>(ordinals.size()), [&](ThreadComm& threads) {
    NcclComm world(threads, Cuda{ordinals[static_cast<std::size_t>(threads.rank())]}, options);
    try {
      function(world);
    } catch (const std::exception& e) {
      // First here, so that spawn names the rank that failed first, not one that heard of it.
      const bool heard = world.engine().failed();
      const std::string text = heard ? e.what() : "rank " + std::to_string(world.rank()) + " failed: " + e.what();
      threads.engine().team().failure->set(world.rank(), text, heard ? nullptr : std::current_exception());
      if (!heard) world.fail(text);
      throw;
    }
  }, of_threads);
}

}  // namespace skein::inline SKEIN_ABI
