// SPDX-License-Identifier: Apache-2.0
// Starts ranks inside a program. The calling thread is rank 0; spawn returns when all ranks have.
#pragma once
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../launch/started_ranks.hpp"
#include "thread_comm.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI {

/// Runs function(ThreadComm&) on n ranks. An exception of one rank ends all ranks: the others' collectives throw its message, and
/// spawn throws a CommError "rank r failed: message" with the original nested in it (std::rethrow_if_nested gives it back). An
/// Interrupted is thrown as it is.
template <class Function> void spawn(int n, Function&& function, const CommOptions& options = {}) {
  if (n < 1) throw ArgumentError("spawn: there must be at least one rank; asked for " + std::to_string(n));
  const auto failure = std::make_shared<comm::Failure>();
  const auto team = std::make_shared<comm::Team>(n, options, n, failure);
  const auto serve = [&](int rank) {
    std::string message;
    std::exception_ptr cause;
    ThreadComm world(team, rank);
    const comm::launch::RankOfThread here({rank, n});
    try {
      function(world);
      return;
    } catch (const std::exception& e) {
      message = e.what();
      cause = std::current_exception();
    } catch (...) {
      message = "an exception that is no std::exception";
      cause = std::current_exception();
    }
    failure->set(rank, "rank " + std::to_string(rank) + " failed: " + message, cause);
    team->wake_everyone();
  };
  std::vector<std::thread> threads;
  try {
    for (int r = 1; r < n; ++r) threads.push_back(std::thread(serve, r));
    serve(0);
  } catch (const std::exception& e) {  // a thread that could not be started
    failure->set(0, std::string("spawn: ") + e.what(), std::current_exception());
    team->wake_everyone();
  }
  for (std::thread& t : threads) t.join();
  if (!failure->happened()) return;
  if (!failure->cause()) throw CommError(failure->message());
  try {
    std::rethrow_exception(failure->cause());
  } catch (const Interrupted&) { throw; } catch (...) {
    std::throw_with_nested(CommError(failure->message()));
  }
}

}  // namespace skein::inline SKEIN_ABI

SKEIN_END_COLD
