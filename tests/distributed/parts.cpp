// SPDX-License-Identifier: Apache-2.0
// Faults in the parts of an MpiComm: who is at fault is named as the whole numbers it.
#include "../support/parts_of_processes.hpp"

TEST_CASE("in parts of processes ranks are named by their numbers in the whole, which goes on", "[distributed]") {
  part_cases::check_processes([](const skein::CommOptions& o) { return skein::MpiComm{MPI_COMM_WORLD, o}; });
}
