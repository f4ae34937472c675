// SPDX-License-Identifier: Apache-2.0
// What the ranks of a coordinator share, and how they agree on a segment.
#pragma once
#include "../control/control_comm.hpp"
#include "../node/segment.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// Where the ranks of a GlooComm are: all share the memory of one node; all are on one machine, which may have several nodes.
struct NodeSharing {
  bool shares_memory = false, one_machine = false;
};

/// How the ranks of a coordinator agree on shared memory.
class ControlNodeMeeting final : public NodeMeeting {
 public:
  explicit ControlNodeMeeting(ControlComm& control) : control_(control) {}
  void tell(SharedFileText& text) override { control_.broadcast(std::span(text)); }
  bool all(bool good) override { return control_.all_reduce(good ? 1 : 0, Min{}) != 0; }

 private:
  ControlComm& control_;
};

}  // namespace skein::inline SKEIN_ABI::comm
