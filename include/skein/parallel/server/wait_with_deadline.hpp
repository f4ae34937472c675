// SPDX-License-Identifier: Apache-2.0
// Waiting for messages where the policy knows better than the communicator whom it misses: with the communicator's deadline, and
// the rank's name in the error that ends all ranks.
#pragma once
#include <algorithm>
#include <chrono>
#include <string>

#include "../../comm/options.hpp"
#include "../../comm/wait.hpp"
#include "../../core/error.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// Seconds until a rank that does not arrive is named.
template <class Comm> double deadline_of(Comm& comm) {
  if constexpr (requires { comm.engine().options().deadline; }) return comm.engine().options().deadline;
  else if constexpr (requires { comm.engine().team().options.deadline; }) return comm.engine().team().options.deadline;
  else return CommOptions{}.deadline;
}

/// Ends all ranks of the communicator with a CommError.
template <class Comm> [[noreturn]] void fail_all(Comm& comm, const std::string& message) {
  if constexpr (requires { comm.engine().fail(message); }) comm.engine().fail(message);
  throw CommError(message);
}

/// How long one look may take: short enough to see failures, and never beyond the deadline by much.
inline std::chrono::nanoseconds poll_interval(double deadline) {
  return std::chrono::nanoseconds(static_cast<long long>(1e9 * std::clamp(deadline / 8, 0.0005, 0.02)));
}

/// Waits for a started message of one peer; `what` it is and who sends it is said by text() where `limit` seconds pass.
template <class Comm, class Request, class Text>
void wait_with_deadline(Comm& comm, Request& request, double limit, Text&& text) {
  comm::Deadline timer(limit);
  const auto interval = poll_interval(limit);
  while (!request.wait_for(interval)) {
    timer.start();
    if (timer.over()) fail_all(comm, text() + " within " + comm::seconds_text(limit));
  }
}

}  // namespace skein::inline SKEIN_ABI::parallel
