// SPDX-License-Identifier: Apache-2.0
// MPI's own collective calls (making and freeing communicators, the start and the end) wait for a missing rank without a
// deadline, and cannot be broken off: at least a line says who waits in which.
#pragma once
#include <condition_variable>
#include <mutex>
#include <thread>

#include "../../core/config.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// While it lives this thread is in an MPI call. After `seconds` a thread prints "rank 2 has waited 60 s in MPI_Comm_split", and
/// again each time that it has waited twice as long.
class LongWait {
 public:
  /// `rank` below 0: not known yet.
  LongWait(const char* call, int rank, double seconds);
  LongWait(const LongWait&) = delete;
  LongWait& operator=(const LongWait&) = delete;
  ~LongWait();
  /// How long is long: the deadline, and a minute at most.
  static double long_of(double deadline) { return deadline > 0 && deadline < 60 ? deadline : 60; }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace skein::inline SKEIN_ABI::comm

#if !SKEIN_COMPILED_MPI
#include "long_wait.ipp"
#endif
