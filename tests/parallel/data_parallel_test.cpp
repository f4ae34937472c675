// SPDX-License-Identifier: Apache-2.0
// DataParallel over threads at 1, 2, 3, 4 and 7 ranks; tests/distributed has the same over processes.
#include "../support/data_parallel_cases.hpp"

#include <skein/comm/self/self_comm.hpp>
#include <skein/comm/thread/spawn.hpp>

namespace cases = data_parallel_cases;
namespace sk = skein;

namespace {
template <class Function> void at_every_size(Function function) {
  for (int n : {1, 2, 3, 4, 7}) {
    INFO(n << " ranks");
    CHECK_NOTHROW(sk::spawn(n, function, {.deadline = 120}));
  }
}
}  // namespace

TEST_CASE("data-parallel training agrees with the serial run", "[parallel]") { at_every_size([](auto& w) { cases::agrees_with_serial(w); }); }
TEST_CASE("accumulation agrees with larger batches", "[parallel]") { at_every_size([](auto& w) { cases::accumulates(w); }); }
TEST_CASE("Reduce::Sum multiplies the step by the ranks", "[parallel]") { at_every_size([](auto& w) { cases::sums(w); }); }
TEST_CASE("weights start as those of rank 0", "[parallel]") { at_every_size([](auto& w) { cases::broadcasts(w); }); }
TEST_CASE("shards of other sizes on each rank", "[parallel]") { at_every_size([](auto& w) { cases::local_shards(w); }); }
TEST_CASE("buffers are the same on all ranks", "[parallel]") { at_every_size([](auto& w) { cases::keeps_buffers_together(w); }); }
TEST_CASE("ranks whose models differ refuse to start", "[parallel]") { at_every_size([](auto& w) { cases::refuses_other_models(w); }); }

TEST_CASE("the first bucket is complete before backward ends, but not without polling", "[parallel]") {
  const auto overlap = [](sk::ThreadComm& world) {
    RANK_CHECK(cases::first_bucket_overlaps(world, true));
    RANK_CHECK(!cases::first_bucket_overlaps(world, false));
  };
  CHECK_NOTHROW(sk::spawn(2, overlap, {.deadline = 120}));
}

TEST_CASE("a world of one needs no communicator's help", "[parallel]") {
  sk::SelfComm self;
  cases::agrees_with_serial(self);
}
