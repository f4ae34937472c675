// SPDX-License-Identifier: Apache-2.0
// Pipelines in 16 bits, with loss scaling and transforms, over processes.
#include "../support/pipeline_precision_cases.hpp"

#include <skein/mpi.hpp>

namespace cases = pipeline_cases;
using S = skein::parallel::PipelineSchedule;

TEST_CASE("a pipeline in 16 bits over processes", "[distributed]") {
  skein::MpiComm everyone{MPI_COMM_WORLD};
  const int wanted = everyone.size() >= 4 ? 4 : everyone.size() >= 2 ? 2 : 1;
  skein::MpiComm world = everyone.split(everyone.rank() < wanted ? 0 : 1, everyone.rank());
  if (everyone.rank() >= wanted) return;
  if (wanted == 2) {
    cases::trains_scaled(world);
    return cases::precision_agrees_with_serial<skein::precision::fp16>(world, {S::interleaved});
  }
  cases::precision_agrees_with_serial<skein::precision::fp16>(world, {S::one_f_one_b, S::zero_bubble});
  cases::transforms_agree_with_serial<skein::precision::fp32>(world);
  if (wanted == 4) cases::links_carry_sixteen_bits(world);
}
