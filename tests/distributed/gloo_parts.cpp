// SPDX-License-Identifier: Apache-2.0
// Faults in the parts of a GlooComm: who is at fault is named as the whole numbers it.
#include <skein/gloo.hpp>

#include "../support/parts_of_processes.hpp"

TEST_CASE("gloo: in parts ranks are named by their numbers in the whole, which goes on", "[distributed]") {
  skein::MpiComm mpi{MPI_COMM_WORLD};
  part_cases::check_processes([&](const skein::CommOptions& o) { return skein::GlooComm{skein::ControlComm::over(mpi, 60), o}; });
}
