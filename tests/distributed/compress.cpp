// SPDX-License-Identifier: Apache-2.0
// Compressed sums over processes: the cases of the threads' tests.
#include <catch2/catch.hpp>

#include <skein/comm/compress/compressed_collectives.hpp>
#include <skein/mpi.hpp>

#include "../support/compress_cases.hpp"

TEST_CASE("compressed sums over processes, with the bytes of the plan", "[distributed]") {
  skein::CommOptions options;
  options.deadline = 120;
  options.shared_memory = GENERATE(true, false);
  skein::MpiComm world{MPI_COMM_WORLD, options};
  CHECK_NOTHROW(compress_cases::everything(world));
}
