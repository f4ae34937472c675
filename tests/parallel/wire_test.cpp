// SPDX-License-Identifier: Apache-2.0
// Wire over threads at 1, 2, 3, 4 and 7 ranks; tests/distributed has the same over processes.
#include <skein/parallel/wire.hpp>

#include "../support/temporary_folder.hpp"
#include "../support/wire_cases.hpp"

#include <skein/comm/thread/spawn.hpp>

namespace sk = skein;
namespace cases = wire_cases;

TEST_CASE("gradients through every wire and algorithm, with the bytes of the plan", "[parallel]") {
  const int ranks = GENERATE(1, 2, 3, 4, 7);
  CHECK_NOTHROW(sk::spawn(ranks, [](sk::ThreadComm& world) { cases::wires(world); }, {.deadline = 60}));
  CHECK_NOTHROW(sk::spawn(ranks, [](sk::ThreadComm& world) { cases::algorithms(world); }, {.deadline = 60}));
}

TEST_CASE("trainings through a wire", "[parallel]") {
  const support::TemporaryFolder folder;
  const int ranks = GENERATE(1, 3);
  CHECK_NOTHROW(sk::spawn(ranks, [&](sk::ThreadComm& world) {
    cases::trains<sk::parallel::Wire<sk::comm::ErrorFeedback<sk::comm::TopK<8>>>>(world, folder / "top");
    cases::trains<sk::parallel::Wire<sk::comm::ErrorFeedback<sk::comm::PowerSgd<2>>>>(world, folder / "power");
  }, {.deadline = 60}));
}
