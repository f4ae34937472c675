// SPDX-License-Identifier: Apache-2.0
// The faults of part_cases.hpp over processes that MPI has started, whatever communicator they have.
#pragma once
#include <skein/mpi.hpp>

#include <catch2/catch.hpp>

#include <iterator>
#include <string>

#include "part_cases.hpp"
#include "thrown.hpp"

namespace part_cases {
/// make(options): the communicator of all ranks. One fault for each run of the test case.
template <class MakeWorld> void check_processes(const MakeWorld& make) {
  int size = 1, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (size < 3 || size > 4) return;
  const Fault fault = GENERATE(from_range(std::begin(faults), std::end(faults)));
  const bool of_part = GENERATE(false, true);
  skein::CommOptions o;
  o.deadline = 30;
  o.shared_memory = GENERATE(true, false);
  o.check = of_part;
  CAPTURE(static_cast<int>(fault), of_part, o.shared_memory);
  std::string text, after;
  {
    auto world = make(o);
    text = support::thrown<skein::CommError>([&] {
      try {
        act(world, fault, of_part);
      } catch (const OwnFault&) {}
    });
    after = support::thrown<skein::CommError>([&] { world.barrier(); });
  }
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(after.empty());  // the whole goes on
  if (rank == 1 || (rank > 1 && fault == Fault::believes)) CHECK_THAT(text, Catch::Contains(wanted(fault, size)));
}
}  // namespace part_cases
