// SPDX-License-Identifier: Apache-2.0
// Sharded over threads; tests/distributed/shards.cpp trains so over processes.
#include "../../support/at_every_size.hpp"
#include "../../support/sharded_cases.hpp"

namespace cases = sharded_cases;
namespace sk = skein;

using support::at_every_size;

TEST_CASE("sharded training has the weights of DataParallel", "[parallel]") {
  at_every_size([](auto& w) { cases::agrees_with_data_parallel(w); });
}
TEST_CASE("each rank keeps its part of the optimizer's state", "[parallel]") {
  at_every_size([](auto& w) { cases::state_is_a_part(w); });
}
TEST_CASE("slices end at parameters where a transform wants those whole", "[parallel]") {
  at_every_size([](auto& w) { cases::slices_end_at_parameters(w); });
}
TEST_CASE("the checkpoint of a sharded training is whole", "[parallel]") {
  const support::TemporaryFolder folder;
  at_every_size([&](auto& w) {
    cases::checkpoints_are_whole(w, folder / "training");
    cases::a_slice_may_be_all(w, folder / std::to_string(w.size()));
  });
}
