// SPDX-License-Identifier: Apache-2.0
// Gossip over processes, at every number of ranks that this program is started with: the cases of the threads' tests.
#include "../support/gossip_cases.hpp"

#include <skein/mpi.hpp>

namespace cases = gossip_cases;
namespace sk = skein;
using sk::parallel::Staleness, sk::parallel::unbounded;

TEST_CASE("gossip over processes", "[distributed]") {
  sk::MpiComm world{MPI_COMM_WORLD};
  cases::averages_with_neighbours(world);
  cases::equals_data_parallel(world);
  if (world.size() == 1) return;
  CHECK(cases::ahead_of_a_slow_one<Staleness<0>>(world) == 0);
  CHECK(cases::ahead_of_a_slow_one<Staleness<2>>(world) == 2);
  CHECK(cases::ahead_of_a_slow_one<Staleness<unbounded>>(world) > 2);
}
