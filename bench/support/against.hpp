// SPDX-License-Identifier: Apache-2.0
// A line of a report from two candidates, ours and a peer's: on the host and on a GPU alike.
#pragma once
#include <string>

#include "peer.hpp"
#include "report.hpp"
#include "slices.hpp"

namespace bench {

/// How the two are timed. A GPU's candidates are timed by events, whose CPU time says nothing.
struct Timing {
  Plan together, by_itself;
  bool cpu_time = true;
};

/// Fills a line with the figures of ours against this peer, or alone; `wrong` is why the results are not to be believed, or
/// empty. False where they are wrong.
inline bool against(Line& l, const Candidate& ours, Peer* peer, const std::string& wrong, const Timing& timing) {
  if (!wrong.empty()) l.accepted = false, l.add(wrong);
  if (const std::string reason = void_reason(ours, timing.by_itself); !reason.empty()) l.accepted = false, l.add(reason);
  const Comparison c = peer ? compare(
                                  ours, [&](long n) { return peer->run(n); }, timing.together)
                            : alone(ours, timing.by_itself);
  l.ours = 1e3 * c.a;
  l.add("least " + number(1e3 * c.least_a) + (peer ? " against " + number(1e3 * c.least_b) : "") +
        (peer && timing.cpu_time ? ", CPU time ratio " + number(c.cpu_ratio) : ""));
  l.peer_name = "PyTorch (not at hand)";  // so that a goal for the ratio is open
  if (peer) {
    l.peer = 1e3 * c.b;
    l.peer_name = "PyTorch, " + peer->name();
    l.ratio = c.ratio;
  }
  return wrong.empty();
}

}  // namespace bench
