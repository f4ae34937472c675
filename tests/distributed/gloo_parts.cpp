// SPDX-License-Identifier: Apache-2.0
// Faults in the parts of a GlooComm: who is at fault is named as the whole numbers it.
#include <skein/gloo.hpp>
#include <skein/mpi.hpp>

#include <catch2/catch.hpp>

#include <iterator>
#include <string>

#include "../support/part_cases.hpp"
#include "../support/thrown.hpp"

namespace sk = skein;

TEST_CASE("gloo: in parts ranks are named by their numbers in the whole, which goes on", "[distributed]") {
  int size = 1, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (size < 3 || size > 4) return;
  const part_cases::Fault fault = GENERATE(from_range(std::begin(part_cases::faults), std::end(part_cases::faults)));
  const bool of_part = GENERATE(false, true);
  sk::CommOptions o;
  o.deadline = 1;
  o.shared_memory = GENERATE(true, false);
  CAPTURE(static_cast<int>(fault), of_part, o.shared_memory);
  sk::MpiComm mpi{MPI_COMM_WORLD};
  std::string text, after;
  {
    sk::GlooComm world{sk::ControlComm::over(mpi, 60), o};
    text = support::thrown<sk::CommError>([&] {
      try {
        part_cases::act(world, fault, of_part);
      } catch (const part_cases::OwnFault&) {}
    });
    world.set_deadline(30);  // one has stood still
    after = support::thrown<sk::CommError>([&] { world.barrier(); });
  }
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(after.empty());  // the whole goes on
  if (rank == 1 || (rank > 1 && fault == part_cases::Fault::believes))
    CHECK_THAT(text, Catch::Contains(part_cases::wanted(fault, size)));
}
