// SPDX-License-Identifier: Apache-2.0
// Processes: what is started on one communicator goes on while its rank waits, or polls, in another, whatever carries the two.
#include <skein/mpi.hpp>

#include "../support/progress_cases.hpp"

#include <catch2/catch.hpp>

#include <exception>
#include <string>

#include "../support/thrown.hpp"

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

TEST_CASE("MPI: the exception of a function that reduces is that of its rank, also while that waits in another communicator",
          "[distributed]") {
  const bool shared = GENERATE(true, false), of_part = GENERATE(true, false), in_destructor = GENERATE(false, true);
  std::string told;
  bool last = false;
  {
    sk::MpiComm world{MPI_COMM_WORLD, within(10, shared, sk::ReductionOrder::ranks)};
    if (world.size() == 1) return;
    last = world.rank() == world.size() - 1;
    told = support::thrown<std::exception>([&] { cases::own_fault_with_part(world, of_part, in_destructor); });
  }
  MPI_Barrier(MPI_COMM_WORLD);
  CAPTURE(shared, of_part, in_destructor);
  CHECK(!told.empty());
  CHECK((told == cases::Checked::too_large) == last);
}
