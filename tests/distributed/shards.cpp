// SPDX-License-Identifier: Apache-2.0
// Reproducible, Sharded and SyncBatchNorm over processes, at every number of ranks that this program is started with.
#include "../support/reproducible_cases.hpp"
#include "../support/sharded_cases.hpp"
#include "../support/sync_batch_norm_cases.hpp"

#include <skein/mpi.hpp>

namespace sk = skein;

TEST_CASE("weights over processes have the bits of one rank over threads", "[distributed]") {
  sk::MpiComm world{MPI_COMM_WORLD};
  const auto here = reproducible_cases::layer_wise(sk::parallel::data_parallel<sk::parallel::Reproducible<8>>(world), 1);
  auto one = here;
  sk::spawn(1, [&](sk::ThreadComm& t) { one = reproducible_cases::layer_wise(sk::parallel::data_parallel<sk::parallel::Reproducible<8>>(t), 1); });
  CHECK(here == one);
}

TEST_CASE("statistics over processes: as one rank with the whole batch", "[distributed]") {
  sk::MpiComm world{MPI_COMM_WORLD};
  sync_batch_norm_cases::agrees_with_one_rank(world, 1);
}

TEST_CASE("sharded training over processes has the weights of DataParallel", "[distributed]") {
  sk::MpiComm world{MPI_COMM_WORLD};
  sharded_cases::agrees_with_data_parallel(world);
  sharded_cases::state_is_a_part(world);
  const support::TemporaryFolder folder;
  sharded_cases::checkpoints_are_whole(world, world.broadcast(folder / "training", 0));
}
