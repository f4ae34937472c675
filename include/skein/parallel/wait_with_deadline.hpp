// SPDX-License-Identifier: Apache-2.0
// Waiting for messages where the policy knows better than the communicator whom it misses: with the communicator's deadline, and
// the rank's name in the error that ends all ranks.
#pragma once
#include <string>

#include "../comm/queries.hpp"
#include "../comm/wait.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// Waits for a started message of one peer; `what` it is and who sends it is said by text() where `limit` seconds pass.
template <class Comm, class Request, class Text>
void wait_with_deadline(Comm& comm, Request& request, double limit, Text&& text) {
  comm::Deadline timer(limit);
  const auto interval = timer.sleep_interval();
  while (!request.wait_for(interval)) {
    timer.start();
    if (!timer.over()) continue;
    if (request.poll()) return;  // it came while this rank stood still
    comm::fail_all(comm, text() + " within " + comm::seconds_text(limit));
  }
}

}  // namespace skein::inline SKEIN_ABI::parallel
