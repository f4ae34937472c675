// SPDX-License-Identifier: Apache-2.0
// Processes: what is started on one communicator goes on while its rank waits, or polls, in another, whatever carries the two.
#include <skein/mpi.hpp>

#include "../support/progress_cases.hpp"

#include <catch2/catch.hpp>

namespace sk = skein;
namespace cases = progress_cases;

namespace {
sk::CommOptions within(double deadline, bool shared_memory, sk::ReductionOrder order = sk::ReductionOrder::automatic) {
  sk::CommOptions o;
  o.deadline = deadline;
  o.shared_memory = shared_memory;
  o.order = order;
  return o;
}
}  // namespace

TEST_CASE("MPI: a rank that waits in another communicator serves this one", "[distributed]") {
  const bool shared = GENERATE(true, false);
  const auto order = GENERATE(sk::ReductionOrder::ranks, sk::ReductionOrder::native);
  sk::MpiComm world{MPI_COMM_WORLD, within(20, shared, order)};
  CHECK_NOTHROW(cases::everything(world));
}
