// SPDX-License-Identifier: Apache-2.0
// SyncBatchNorm over threads; tests/distributed/shards.cpp has the same over processes.
#include "../../support/sync_batch_norm_cases.hpp"
#include "../../support/thrown.hpp"

#include <skein/comm/thread/spawn.hpp>

namespace cases = sync_batch_norm_cases;
namespace sk = skein;

TEST_CASE("statistics over ranks: as one rank with the whole batch", "[parallel]") {
  for (int ranks : {1, 2, 3, 4})
    for (int threads : {1, 2}) {
      INFO(ranks << " ranks of " << threads << " threads");
      CHECK_NOTHROW(
          sk::spawn(ranks, [&](sk::ThreadComm& world) { cases::agrees_with_one_rank(world, threads); }, {.deadline = 120}));
    }
}

TEST_CASE("ranks whose workers are not as many make their calls in the same order", "[parallel]") {
  CHECK_NOTHROW(
      sk::spawn(3, [&](sk::ThreadComm& world) { cases::agrees_with_one_rank(world, 1 + world.rank()); }, {.deadline = 120}));
  CHECK_NOTHROW(sk::spawn(2, [&](sk::ThreadComm& world) { cases::agrees_with_one_rank<cases::Wide>(world, 1 + world.rank()); },
                          {.deadline = 120}));
}

TEST_CASE("a batch of one sample over all ranks has no variance, and all ranks say so", "[parallel]") {
  std::string said[2];
  sk::spawn(2, [&](sk::ThreadComm& world) {
    const sk::parallel::DataParallel policy{world, {}, sk::parallel::SyncBatchNorm{}};
    said[world.rank()] = support::thrown<sk::ArgumentError>(
        [&] { shard_cases::train<cases::Net>(policy, {.epochs = 1, .batch = 60, .threads = 2}); });
  });
  for (const std::string& text : said)
    CHECK_THAT(text, Catch::Contains("(BatchNorm of 12 channels) trains on a batch of 1 sample"));
}
