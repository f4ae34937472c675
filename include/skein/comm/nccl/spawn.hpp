// SPDX-License-Identifier: Apache-2.0
// Several GPUs in one process: a rank a GPU, each a thread of this process, with NCCL between them; and the same in each of
// several processes, whose GPUs together are one world.
#pragma once
#include "../thread/spawn.hpp"
#include "nccl_comm.hpp"

namespace skein::inline SKEIN_ABI {

namespace comm {
/// The ranks of several processes, each with some threads: enough of a communicator for them to meet. Used from all its threads.
template <class Processes> class ThreadsOfProcesses {
 public:
  ThreadsOfProcesses(Processes& processes, ThreadComm& threads, int first, int size)
      : processes_(&processes), threads_(&threads), first_(first), size_(size) {}
  int rank() const { return first_ + threads_->rank(); }
  int size() const { return size_; }
  /// Copies the text of rank 0, which is thread 0 of process 0, to every thread.
  std::string broadcast(std::string text, int) {
    if (threads_->rank() == 0) text = processes_->broadcast(std::move(text), 0);
    return threads_->broadcast(std::move(text), 0);
  }

 private:
  Processes* processes_;
  ThreadComm* threads_;
  int first_, size_;
};

/// Runs function on a thread for each device; meet(threads, device) makes its communicator.
template <class Meet, class Function>
void run_on_devices(const std::vector<int>& ordinals, Meet&& meet, Function&& function, const NcclOptions& options) {
  CommOptions of_threads;
  of_threads.deadline = options.deadline;
  spawn(
      static_cast<int>(ordinals.size()),
      [&](ThreadComm& threads) {
        NcclComm world = meet(threads, Cuda{ordinals[static_cast<std::size_t>(threads.rank())]});
        try {
          function(world);
        } catch (const std::exception& e) {
          // First here, so that spawn names the rank that failed first, not one that heard of it.
          const bool heard = world.engine().failed();
          const std::string text = heard ? e.what() : skein::text("rank {} failed: {}", world.rank(), e.what());
          threads.engine().team().failure->set(world.rank(), text, heard ? nullptr : std::current_exception());
          if (!heard) world.fail(text);
          throw;
        }
      },
      of_threads);
}
}  // namespace comm

/// Runs function(NcclComm&) on a rank for each of the devices; world.where() is the rank's. The calling thread is rank 0. An
/// exception of one rank ends all, as spawn(n, function) has it. Throws ArgumentError where a device is not visible.
template <class Function>
requires std::invocable<Function&, NcclComm&>
void spawn(const LocalDevices& devices, Function&& function, const NcclOptions& options = {}) {
  comm::run_on_devices(
      devices.resolve(cuda::device_count()), [&](ThreadComm& threads, Cuda device) { return NcclComm(threads, device, options); },
      function, options);
}

/// Starts ranks in each of several processes (ranks of an MpiComm, say), each with devices of its own: one world of all their
/// GPUs, in the order of the processes. Collective over `processes`, which carries the meeting place only. A process may drive
/// another number of GPUs than the next one, but at least one.
template <class Processes, class Function>
requires(Communicator<Processes>&& std::invocable<Function&, NcclComm&>) void spawn(Processes& processes,
                                                                                    const LocalDevices& devices,
                                                                                    Function&& function,
                                                                                    const NcclOptions& options = {}) {
  const std::vector<int> ordinals = devices.resolve(cuda::device_count());
  const std::vector<int> counts = processes.all_gather(static_cast<int>(ordinals.size()));
  int first = 0, size = 0;
  for (int p = 0; p < processes.size(); ++p) {
    if (p < processes.rank()) first += counts[static_cast<std::size_t>(p)];
    size += counts[static_cast<std::size_t>(p)];
  }
  comm::run_on_devices(
      ordinals,
      [&](ThreadComm& threads, Cuda device) {
        comm::ThreadsOfProcesses<Processes> all(processes, threads, first, size);
        return NcclComm(ControlComm::over(all, options.deadline), device, options);
      },
      function, options);
}
/// Starts ranks where the processes of a machine divide its D GPUs in blocks: process r of M drives [r D / M, (r + 1) D / M).
template <class Processes, class Function>
requires(Communicator<Processes>&& std::invocable<Function&, NcclComm&>) void spawn_blocks(
    Processes& processes, Function&& function, const NcclOptions& options = {},
    const comm::launch::LaunchEnvironment& environment = comm::launch::launch_environment()) {
  const comm::launch::DeviceBlock block = comm::launch::resolve_block(environment, cuda::device_count());
  std::vector<int> ordinals;
  for (int d = block.begin; d < block.end; ++d) ordinals.push_back(d);
  spawn(processes, LocalDevices(ordinals), std::forward<Function>(function), options);
}

}  // namespace skein::inline SKEIN_ABI
