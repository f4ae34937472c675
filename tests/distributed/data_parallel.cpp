// SPDX-License-Identifier: Apache-2.0
// DataParallel over processes, at every number of ranks that this program is started with: the cases of the threads' tests.
#include "../support/data_parallel_cases.hpp"

#include <algorithm>

#include <skein/mpi.hpp>

namespace cases = data_parallel_cases;
namespace sk = skein;

TEST_CASE("data-parallel training over processes agrees with the serial run", "[distributed]") {
  sk::MpiComm world{MPI_COMM_WORLD};
  cases::agrees_with_serial(world);
  cases::accumulates(world);
  cases::sums(world);
  cases::broadcasts(world);
  cases::local_shards(world);
  cases::keeps_buffers_together(world);
  cases::refuses_other_models(world);
}

TEST_CASE("data-parallel training in native order agrees with the serial run", "[distributed]") {
  sk::CommOptions o;
  o.order = sk::ReductionOrder::native;
  o.node_size = GENERATE(0, 1, 2);  // 0: no rank shares memory; else nodes of so many ranks
  o.shared_memory = o.node_size > 0;
  sk::MpiComm world{MPI_COMM_WORLD, o};
  if (world.size() <= std::max(1, o.node_size)) return;  // one node, whose order is that of the ranks
  CHECK(world.order() == sk::ReductionOrder::native);
  cases::agrees_with_serial(world);
  cases::accumulates(world);
  cases::local_shards(world);
  cases::keeps_buffers_together(world);
}

TEST_CASE("the first bucket is complete before backward ends, over processes too", "[distributed]") {
  sk::MpiComm world{MPI_COMM_WORLD};
  if (world.size() != 2) return;  // with more ranks than cores a rank may not run in between
  CHECK(cases::first_bucket_overlaps(world, true));
  CHECK_FALSE(cases::first_bucket_overlaps(world, false));
}

TEST_CASE("a rank over processes has the bits of a rank over threads", "[distributed]") {
  sk::MpiComm world{MPI_COMM_WORLD};
  const sk::FitOptions options{.epochs = 1, .batch = 10, .threads = 1};
  const cases::Result here = cases::train(sk::parallel::DataParallel{world}, options);
  cases::Result there;
  sk::spawn(world.size(),
            [&](sk::ThreadComm& t) {
              cases::Result r = cases::train(sk::parallel::DataParallel{t}, options);
              if (t.rank() == 0) there = r;
            },
            {.deadline = 120});
  CHECK(here.parameters == there.parameters);
  CHECK(here.losses == there.losses);
}
