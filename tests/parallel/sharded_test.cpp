// SPDX-License-Identifier: Apache-2.0
// Sharded over threads; tests/distributed/shards.cpp trains so over processes.
#include "../support/sharded_cases.hpp"

#include <skein/comm/thread/spawn.hpp>

namespace cases = sharded_cases;
namespace sk = skein;

namespace {
template <class Function> void at_every_size(Function function) {
  for (int n : {1, 2, 3, 4, 7}) {
    INFO(n << " ranks");
    CHECK_NOTHROW(sk::spawn(n, function, {.deadline = 120}));
  }
}
}  // namespace

TEST_CASE("sharded training has the weights of DataParallel", "[parallel]") { at_every_size([](auto& w) { cases::agrees_with_data_parallel(w); }); }
TEST_CASE("each rank keeps its part of the optimizer's state", "[parallel]") { at_every_size([](auto& w) { cases::state_is_a_part(w); }); }
TEST_CASE("the checkpoint of a sharded training is whole", "[parallel]") {
  const support::TemporaryFolder folder;
  at_every_size([&](auto& w) { cases::checkpoints_are_whole(w, folder / "training"); });
}
