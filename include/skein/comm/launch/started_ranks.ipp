// SPDX-License-Identifier: Apache-2.0
// The bodies of started_ranks.hpp.
#pragma once
#include "local_devices.hpp"
#include "started_ranks.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm::launch {

SKEIN_INLINE StartedRank started_rank() {
  if (const StartedRank of_thread = RankOfThread::current(); of_thread.ranks > 1) return of_thread;
  try {
    const LaunchEnvironment e = launch_environment();
    if (e.size > 1 && e.rank >= 0 && e.launcher != "Slurm") return {e.rank, e.size};
  } catch (const ArgumentError&) {}  // whoever needs a place says what is wrong with it
  return {};
}

}  // namespace skein::inline SKEIN_ABI::comm::launch

SKEIN_END_COLD
