// SPDX-License-Identifier: Apache-2.0
// GradientWorkers over processes, at every number of ranks that this program is started with: the cases of the threads' tests.
#include <skein/optim/kfac/kfac.hpp>

#include <catch2/catch.hpp>

#include "../support/gradient_workers_cases.hpp"
#include "../support/temporary_folder.hpp"

#include <skein/mpi.hpp>

namespace cases = gradient_workers_cases;
namespace sk = skein;
namespace sp = skein::parallel;

TEST_CASE("K-FAC over processes, whoever keeps the inverses", "[distributed]") {
  sk::MpiComm world{MPI_COMM_WORLD};
  cases::agrees_with_one_rank<sp::EveryRank>(world);
  cases::agrees_with_one_rank<sp::Fraction<1, 2>>(world);
  cases::agrees_with_one_rank<sp::OneRank>(world);
  cases::agrees_with_one_rank<sp::Fraction<1, 2>, cases::Normalized>(world);
  cases::sends_what_is_planned<sp::Fraction<1, 2>>(world);
  cases::sends_what_is_planned<sp::OneRank>(world);
  const support::TemporaryFolder folder;
  cases::goes_on(world, world.broadcast(folder / "training", 0));
}
