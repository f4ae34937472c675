// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of a program, whatever their communicator is: what spawn and simulate have in common.
#pragma once
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "../../core/error.hpp"
#include "team.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

/// Runs function(make(rank)) on n threads, of which the calling one is rank 0, and returns when all have. The first exception is
/// `failure`; it is set before the rank's communicator ends. ended(rank) is called then, after a rank that has returned, and
/// where make has thrown. Throws a CommError "rank r failed: message" with the original nested in it, an Interrupted as it is.
/// `call` names the caller.
template <class Make, class Function, class Ended>
void run_ranks(const char* call, int n, Failure& failure, Make&& make, Function&& function, Ended&& ended) {
  const auto guard = [&](int rank, const auto& act) {
    const std::string failed = text("rank {} failed: ", rank);
    try {
      act();
    } catch (const std::exception& e) { failure.set(rank, failed + e.what(), std::current_exception()); } catch (...) {
      failure.set(rank, failed + "an exception that is no std::exception", std::current_exception());
    }
  };
  const auto serve = [&](int rank) {
    bool made = false;
    guard(rank, [&] {
      auto world = make(rank);
      made = true;
      guard(rank, [&] { function(world); });
      ended(rank);
    });
    if (!made) ended(rank);
  };
  std::vector<std::thread> threads;
  try {
    for (int r = 1; r < n; ++r) threads.push_back(std::thread(serve, r));
    serve(0);
  } catch (const std::exception& e) {  // a thread that could not be started
    failure.set(0, std::string(call) + ": " + e.what(), std::current_exception());
    ended(0);
  }
  for (std::thread& t : threads) t.join();
  if (!failure.happened()) return;
  if (!failure.cause()) throw CommError(failure.message());
  try {
    std::rethrow_exception(failure.cause());
  } catch (const Interrupted&) { throw; } catch (...) {
    std::throw_with_nested(CommError(failure.message()));
  }
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
