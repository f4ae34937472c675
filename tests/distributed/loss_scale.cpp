// SPDX-License-Identifier: Apache-2.0
// Loss scaling over processes: the cases of the threads' tests.
#include "../support/loss_scale_cases.hpp"

#include <skein/mpi.hpp>

TEST_CASE("an overflow on one process skips the step on all", "[distributed]") {
  skein::MpiComm world{MPI_COMM_WORLD};
  loss_scale_cases::all(world);
}
