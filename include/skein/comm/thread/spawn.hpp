// SPDX-License-Identifier: Apache-2.0
// Starts ranks inside a program. The calling thread is rank 0; spawn returns when all ranks have.
#pragma once
#include <memory>
#include <string>
#include <type_traits>

#include "../launch/started_ranks.hpp"
#include "run_ranks.hpp"
#include "thread_comm.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI {

/// Runs function(ThreadComm&) on n ranks. An exception of one rank ends all ranks: the others' collectives throw its message, and
/// spawn throws a CommError "rank r failed: message" with the original nested in it (std::rethrow_if_nested gives it back). An
/// Interrupted is thrown as it is.
template <class Function> void spawn(int n, Function&& function, const CommOptions& options = {}) {
  static_assert(std::is_invocable_v<Function&, ThreadComm&>,
                "spawn calls its function with the communicator of each rank: sk::spawn(2, [](sk::ThreadComm& world) { ... })");
  if (n < 1) throw ArgumentError(text("spawn: there must be at least one rank; asked for {}", n));
  const auto failure = std::make_shared<comm::Failure>();
  const auto team = std::make_shared<comm::Team>(n, options, n, failure);
  comm::run_ranks(
      "spawn", n, *failure, [&](int rank) { return ThreadComm(team, rank); },
      [&](ThreadComm& world) {
        const comm::launch::RankOfThread here({world.rank(), n});
        if constexpr (std::is_invocable_v<Function&, ThreadComm&>) function(world);
      },
      [&](int) {
        if (failure->happened()) team->wake_everyone();
      });
}

}  // namespace skein::inline SKEIN_ABI

SKEIN_END_COLD
