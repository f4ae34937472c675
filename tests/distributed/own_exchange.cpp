// SPDX-License-Identifier: Apache-2.0
// An exchange of one's own over processes.
#include "../support/own_exchange_cases.hpp"

#include <skein/mpi.hpp>

TEST_CASE("an exchange of one's own trains over processes as the all-reduce does", "[distributed]") {
  sk::MpiComm world{MPI_COMM_WORLD};
  CHECK_NOTHROW(own_exchange_cases::agrees_with_all_reduce(world));
}
