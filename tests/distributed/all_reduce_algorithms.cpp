// SPDX-License-Identifier: Apache-2.0
// All-reduces by tables over processes: the cases of the threads' tests, at every number of ranks that this program is started
// with.
#include <catch2/catch.hpp>

#include <skein/comm/algorithms/all_reduce.hpp>
#include <skein/mpi.hpp>

#include "../support/all_reduce_cases.hpp"

namespace sk = skein;
namespace cases = all_reduce_cases;

TEST_CASE("all-reduces by tables equal the communicator's, and send what the tables say, between processes", "[distributed]") {
  sk::CommOptions options;
  options.deadline = 120;
  options.shared_memory = GENERATE(true, false);
  options.message = 8192;  // messages in pieces: one message of the table all the same
  sk::MpiComm world{MPI_COMM_WORLD, options};
  CHECK_NOTHROW(cases::everything(world, 9001));
  CHECK_NOTHROW(cases::overlaps(world));
  CHECK_NOTHROW(cases::chooses(world));
}
