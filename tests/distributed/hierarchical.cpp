// SPDX-License-Identifier: Apache-2.0
// Hierarchical over processes, and over threads of processes that meet through one thread each.
#include "../support/hierarchical_cases.hpp"

#include <skein/comm/thread/spawn.hpp>
#include <skein/mpi.hpp>

namespace cases = hierarchical_cases;
namespace sk = skein;

TEST_CASE("a world of two levels over processes", "[distributed]") {
  sk::MpiComm world{MPI_COMM_WORLD};
  cases::split_worlds(world);
  sk::Hierarchical levels{world};  // what MPI says of its nodes: here one
  RANK_CHECK(levels.levels().nodes == 1);
}

TEST_CASE("threads of processes are one world without an MPI for threads", "[distributed]") {
  sk::MpiComm world{MPI_COMM_WORLD};
  if (world.size() > 3) return;
  sk::spawn(2,
            [&](sk::ThreadComm& node) {
              sk::Hierarchical<sk::ThreadComm, sk::MpiComm> both{
                  node, node.rank() == 0 ? &world : nullptr};  // rank 0 is the calling thread
              RANK_CHECK(both.size() == 2 * world.size() && both.rank() == 2 * world.rank() + node.rank());
              cases::everything(both);
            },
            {.deadline = 60});
}
