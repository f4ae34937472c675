// SPDX-License-Identifier: Apache-2.0
// All-reduces by tables over processes: the cases of the threads' tests, at every number of ranks that this program is started
// with.
#include <catch2/catch.hpp>

#include <vector>

#include <skein/comm/algorithms/all_reduce.hpp>
#include <skein/comm/sim/sim_comm.hpp>
#include <skein/mpi.hpp>

#include "../support/all_reduce_cases.hpp"

namespace sk = skein;
namespace cases = all_reduce_cases;

TEST_CASE("all-reduces by tables equal the communicator's, and send what the tables say, between processes", "[distributed]") {
  sk::CommOptions options;
  options.deadline = 120;
  options.shared_memory = GENERATE(true, false);
  options.message = 8192;  // messages in pieces: one message of the table all the same
  sk::MpiComm world{MPI_COMM_WORLD, options};
  CHECK_NOTHROW(cases::everything(world, 9001));
  CHECK_NOTHROW(cases::overlaps(world));
  CHECK_NOTHROW(cases::chooses(world));
}

TEST_CASE("what leaves each process is what the simulator says leaves it", "[distributed]") {
  sk::MpiComm world{MPI_COMM_WORLD, sk::CommOptions{.deadline = 120}};
  const auto program = [](auto& ranks) {
    std::vector<double> x(1001, 1.0);
    sk::comm::Traffic sum;
    for (const sk::comm::Traffic t :
         {sk::comm::ring_all_reduce(ranks, x), sk::comm::recursive_doubling_all_reduce(ranks, x),
          sk::comm::torus_all_reduce(ranks, x, ranks.size()), sk::comm::hierarchical_all_reduce(ranks, x, 2)})
      sum.messages += t.messages, sum.bytes += t.bytes;
    return sum;
  };
  const sk::comm::Traffic real = program(world);
  const sk::SimReport simulated = sk::simulate(world.size(), {}, [&](sk::SimComm& ranks) { (void)program(ranks); });
  const sk::SimRank& own = simulated.ranks[static_cast<std::size_t>(world.rank())];
  CHECK(own.messages == real.messages);
  CHECK(own.bytes == real.bytes);
  CHECK((world.size() == 1) == (real.bytes == 0));
}
