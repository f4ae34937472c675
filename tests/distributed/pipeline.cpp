// SPDX-License-Identifier: Apache-2.0
// Pipeline over processes: the cases of the threads' tests, on as many of the ranks as they want.
#include "../support/pipeline_cases.hpp"

#include <skein/mpi.hpp>

namespace cases = pipeline_cases;
using S = skein::parallel::PipelineSchedule;

TEST_CASE("a pipeline over processes", "[distributed]") {
  skein::MpiComm everyone{MPI_COMM_WORLD};
  const int wanted = everyone.size() >= 4 ? 4 : everyone.size() >= 2 ? 2 : 1;
  skein::MpiComm world = everyone.split(everyone.rank() < wanted ? 0 : 1, everyone.rank());
  if (everyone.rank() >= wanted) return;
  cases::holds_its_own_stages(world);
  cases::trains(world);
  if (wanted == 2) return cases::agrees_with_serial(world, {S::interleaved});
  cases::agrees_with_serial(world, {S::one_f_one_b, S::zero_bubble});
  cases::pipedream_is_delayed(world);
  cases::ties(world);
  if (wanted == 4) {
    cases::follows_the_table(world);
    cases::commits_change_nothing(world);
    cases::differing_replicas_are_named(world);
  }
}
