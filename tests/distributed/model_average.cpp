// SPDX-License-Identifier: Apache-2.0
// Averages of models over processes, at every number of ranks that this program is started with: some cases of the threads'
// tests.
#include "../support/periodic_cases.hpp"

#include <skein/mpi.hpp>

namespace cases = periodic_cases;
namespace sk = skein;

TEST_CASE("periodic synchronisation over processes", "[distributed]") {
  sk::MpiComm world{MPI_COMM_WORLD};
  cases::weighs(world);
  cases::streams(world);
  cases::has_levels(world);
  cases::refuses_other_options(world);
  cases::learns(world);
}
