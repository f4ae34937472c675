// SPDX-License-Identifier: Apache-2.0
// One late rank among processes that MPI has started, whose deadline a busy machine does not pass for the others.
#pragma once
#include "skein/comm/mpi/api.hpp"

namespace support {

/// Gives rank `of` a deadline of so many seconds once all but `missing` have started their call: that one alone is late, however
/// a busy machine runs the others. Ranks are those of MPI_COMM_WORLD, and messages have the tag 8.
template <class Comm> void short_deadline_when_all_have_called(Comm& world, int of, int missing, double seconds) {
  char other = 0;
  if (world.rank() != of && world.rank() != missing) MPI_Send("x", 1, MPI_CHAR, of, 8, MPI_COMM_WORLD);
  if (world.rank() != of) return;
  for (int r = 0; r < world.size(); ++r)
    if (r != of && r != missing) MPI_Recv(&other, 1, MPI_CHAR, r, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  world.set_deadline(seconds);
}

}  // namespace support
