// SPDX-License-Identifier: Apache-2.0
// How the ranks of a coordinator agree on a segment.
#pragma once
#include "../control/control_comm.hpp"
#include "../node/segment.hpp"

namespace skein::inline SKEIN_ABI::comm {

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
