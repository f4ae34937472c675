// SPDX-License-Identifier: Apache-2.0
// Reproducible, Sharded and SyncBatchNorm over processes, at every number of ranks that this program is started with.
#include "../support/reproducible_cases.hpp"
#include "../support/sharded_cases.hpp"
#include "../support/sync_batch_norm_cases.hpp"

#include <skein/mpi.hpp>
#include <skein/parallel/data/sharded.hpp>

namespace sk = skein;

TEST_CASE("weights over processes have the bits of one rank over threads", "[distributed]") {
  sk::MpiComm world{MPI_COMM_WORLD};
  const auto here = reproducible_cases::layer_wise(sk::parallel::DataParallel{world, sk::parallel::Reproducible<8>{}}, 1);
  auto one = here;
  sk::spawn(1, [&](sk::ThreadComm& t) {
    one = reproducible_cases::layer_wise(sk::parallel::DataParallel{t, sk::parallel::Reproducible<8>{}}, 1);
  });
  CHECK(here == one);
}

TEST_CASE("statistics over processes, with sharded state and scattered gradients: as one rank with the whole batch",
          "[distributed]") {
  sk::MpiComm world{MPI_COMM_WORLD};
  const auto policy =
      sk::parallel::DataParallel{world, {.bucket_bytes = 1}, sk::parallel::Sharded<2>{}, sk::parallel::SyncBatchNorm{}};
  shard_cases::require_close(sync_batch_norm_cases::train(policy, 1),
                             sync_batch_norm_cases::train(sk::parallel::SingleProcess{}, 1), 1e-9);
}

TEST_CASE("slices that end at parameters, over processes", "[distributed]") {
  sk::MpiComm world{MPI_COMM_WORLD};
  sharded_cases::slices_end_at_parameters(world);
}
