// SPDX-License-Identifier: Apache-2.0
// Among how many ranks the calling thread was started: by skein::spawn, or as a process by mpirun, srun or torchrun. For a
// training that has no policy: whether that was forgotten.
#pragma once
#include "../../core/config.hpp"

namespace skein::inline SKEIN_ABI::comm::launch {

/// A rank among those that were started together; rank 0 of 1 where nobody said anything.
struct StartedRank {
  int rank = 0, ranks = 1;
};

/// While it lives, the thread is that rank; made by spawn.
class RankOfThread {
 public:
  explicit RankOfThread(StartedRank rank) : before_(current_) { current_ = rank; }
  RankOfThread(const RankOfThread&) = delete;
  RankOfThread& operator=(const RankOfThread&) = delete;
  ~RankOfThread() { current_ = before_; }
  static StartedRank current() { return current_; }

 private:
  static inline constinit thread_local StartedRank current_{};
  StartedRank before_;
};

/// The rank of this thread where spawn() has started it, else that of this process, as its launcher says. Slurm's variables
/// count only beside those of a PMI: a batch script has them too.
StartedRank started_rank();

}  // namespace skein::inline SKEIN_ABI::comm::launch

#if !SKEIN_COMPILED
#include "started_ranks.ipp"
#endif
