// SPDX-License-Identifier: Apache-2.0
// Which ranks of this machine have ended without leaving the communicator: a file descriptor of each process (pidfd_open, Linux
// 5.3) says so at once, also where the launcher does not end the others. Elsewhere, and of other machines, the deadline does.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "../node/process_numbers.hpp"
#include "api.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

/// The processes of a communicator's other ranks on this machine.
class ProcessWatch {
 public:
  /// Collective over the communicator: ranks tell each other where they run.
  ProcessWatch(MPI_Comm comm, int rank, int ranks);

  /// Looks, ten times a second at most, whether a process has ended; true once one has for 0.3 s: what it had sent has come by
  /// then.
  bool any_ended();
  /// Whether the process of rank r had ended when any_ended() looked last.
  bool has_ended(int r) const { return ended_[static_cast<std::size_t>(r)]; }

 private:
  struct Process;
  /// One descriptor a process, whatever the number of communicators.
  static std::shared_ptr<Process> open(int pid);

  std::vector<std::shared_ptr<Process>> processes_;  // by rank; none of itself, and of other machines
  std::vector<bool> ended_;
  double looked_ = 0, since_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD

#if !SKEIN_COMPILED_MPI
#include "process_watch.ipp"
#endif
