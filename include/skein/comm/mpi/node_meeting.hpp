// SPDX-License-Identifier: Apache-2.0
// How the ranks of an MPI communicator agree on the shared memory of their node (comm/node/segment.hpp).
#pragma once
#include "../node/segment.hpp"
#include "api.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

/// The ranks of `comm`, which are on one node.
class MpiNodeMeeting final : public NodeMeeting {
 public:
  explicit MpiNodeMeeting(MPI_Comm comm) : comm_(comm) {}
  /// Collective. False, on all ranks alike, where the machine gives no shared memory.
  bool make(Segment& segment, int rank, int ranks) { return segment.create(*this, rank, ranks); }
  void tell(SharedFileText& text) override { check_mpi(MPI_Bcast(text, sizeof text, MPI_CHAR, 0, comm_), "MPI_Bcast"); }
  bool all(bool good) override {
    int own = good ? 1 : 0, least = 0;
    check_mpi(MPI_Allreduce(&own, &least, 1, MPI_INT, MPI_MIN, comm_), "MPI_Allreduce");
    return least != 0;
  }

 private:
  MPI_Comm comm_;
};

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
