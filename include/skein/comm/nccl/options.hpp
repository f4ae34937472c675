// SPDX-License-Identifier: Apache-2.0
// What a user may choose of an NcclComm.
#pragma once
#include <string>

#include "../options.hpp"

namespace skein::inline SKEIN_ABI {

/// Options of NcclComm.
struct NcclOptions {
  /// Seconds until a rank that does not arrive is named, and all others' calls are aborted (environment: SKEIN_DEADLINE).
  double deadline = CommOptions::deadline_of_environment();
  /// Compare kind, type and count of every collective before it is given to NCCL, which hangs where they differ: the host waits
  /// for the others in each call (environment: SKEIN_CHECK=1).
  bool check = environment_switch("SKEIN_CHECK", false);
  /// false: NCCL launches from a thread of its own, and a start or launch that hangs is aborted at the deadline. true: it
  /// launches from the calling thread, which costs less time a call.
  bool blocking = false;
  /// Calls may be captured although ranks share a process (environment: SKEIN_CAPTURE_IN_ONE_PROCESS=1). NCCL's guide: several
  /// GPUs of one process and captured calls may deadlock. Nobody has seen it work here yet, so such steps are launched.
  bool capture_in_one_process = environment_switch("SKEIN_CAPTURE_IN_ONE_PROCESS", false);
  /// A name that the ranks of this job have in common and those of others have not; for ranks that meet without MPI.
  std::string job{};
};

}  // namespace skein::inline SKEIN_ABI
