// SPDX-License-Identifier: Apache-2.0
// ParameterServer and Gossip over processes, at every number of ranks that this program is started with: some cases of the
// threads' tests.
#include "../support/gossip_cases.hpp"
#include "../support/parameter_server_cases.hpp"

#include <skein/mpi.hpp>

namespace sk = skein;
using sk::parallel::LateRate, sk::parallel::Staleness, sk::parallel::unbounded;

TEST_CASE("a parameter server over processes", "[distributed]") {
  namespace cases = parameter_server_cases;
  sk::MpiComm world{MPI_COMM_WORLD};
  if (world.size() == 1) return;  // nobody would train
  cases::equals_data_parallel(world, {.epochs = 2, .batch = 10});
  cases::trains<Staleness<unbounded>>(world, LateRate::constant);
  cases::trains<Staleness<2>>(world, LateRate::divided);
  cases::saves_and_loads(world, "parameter_server_" + std::to_string(world.size()) + ".saved");
  if (world.size() < 3) return;
  if (world.size() < 5) cases::gradients_of_long_messages(world);
  CHECK(cases::ahead_of_a_slow_one<Staleness<2>>(world, 2) == 2);
  CHECK(cases::ahead_of_a_slow_one<Staleness<unbounded>>(world, 3) > 2);
}

TEST_CASE("gossip over processes", "[distributed]") {
  namespace cases = gossip_cases;
  sk::MpiComm world{MPI_COMM_WORLD};
  cases::averages_with_neighbors(world);
  cases::equals_data_parallel(world);
  if (world.size() == 1) return;
  cases::meets_with_long_weights<4>(world);
  cases::another_policy_meets<3>(world);
  cases::another_communicator_meets<0>(world);
  cases::another_communicator_meets<2>(world);
  CHECK(cases::ahead_of_a_slow_one<Staleness<2>>(world, 2) == 2);
  CHECK(cases::ahead_of_a_slow_one<Staleness<unbounded>>(world, 3) > 2);
}
