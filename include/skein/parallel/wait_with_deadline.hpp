// SPDX-License-Identifier: Apache-2.0
// Waiting for messages where the policy knows better than the communicator whom it misses: with the communicator's deadline, and
// the rank's name in the error that ends all ranks.
#pragma once
#include <algorithm>
#include <chrono>
#include <string>

#include "../comm/queries.hpp"
#include "../comm/wait.hpp"

namespace skein::inline SKEIN_ABI::parallel {

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
    if (!timer.over()) continue;
    if (request.poll()) return;  // it came while this rank stood still
    comm::fail_all(comm, text() + " within " + comm::seconds_text(limit));
  }
}

}  // namespace skein::inline SKEIN_ABI::parallel
