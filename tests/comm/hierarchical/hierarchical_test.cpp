// SPDX-License-Identifier: Apache-2.0
// Hierarchical over threads; tests/distributed has it over processes, and over threads of processes.
#include <skein/comm/hierarchical/hierarchical.hpp>

#include "../../support/hierarchical_cases.hpp"

#include <skein/comm/thread/spawn.hpp>

namespace sk = skein;
namespace cases = hierarchical_cases;

static_assert(sk::Communicator<sk::Hierarchical<sk::ThreadComm>> && sk::StartsAllReduce<sk::Hierarchical<sk::ThreadComm>> &&
              sk::Broadcasts<sk::Hierarchical<sk::ThreadComm>> && sk::AllGathers<sk::Hierarchical<sk::ThreadComm>>);
static_assert(!sk::ReduceScatters<sk::Hierarchical<sk::ThreadComm>> && !sk::AllToAlls<sk::Hierarchical<sk::ThreadComm>> &&
              !sk::Sends<sk::Hierarchical<sk::ThreadComm>> && !sk::ReducesToRoot<sk::Hierarchical<sk::ThreadComm>>);

TEST_CASE("a world of two levels", "[comm]") {
  const int ranks = GENERATE(1, 2, 4, 6, 7);
  CHECK_NOTHROW(sk::spawn(ranks, [](sk::ThreadComm& world) { cases::split_worlds(world); }, {.deadline = 60}));
}

TEST_CASE("leaders alone talk to other nodes", "[comm]") {
  const int node = GENERATE(1, 2, 3);
  const auto levels = [node](sk::ThreadComm& world) {
    sk::ThreadComm inside = world.split(world.rank() / node), leaders = world.split(world.rank() % node);
    sk::Hierarchical<sk::ThreadComm, sk::ThreadComm> both{inside, inside.rank() == 0 ? &leaders : nullptr};
    cases::everything(both);
  };
  CHECK_NOTHROW(sk::spawn(6, levels, {.deadline = 60}));
}

TEST_CASE("nodes of other sizes are refused by every rank", "[comm]") {
  const auto refused = [](sk::ThreadComm& world) {
    sk::ThreadComm inside = world.split(world.rank() == 0), leaders = world.split(world.rank() <= 1);
    std::string what;
    try {
      sk::Hierarchical<sk::ThreadComm, sk::ThreadComm> both{inside, inside.rank() == 0 ? &leaders : nullptr};
    } catch (const sk::ArgumentError& e) { what = e.what(); }
    RANK_CHECK(what.find("its nodes have other numbers of ranks than this one, which has " + std::to_string(inside.size())) !=
               std::string::npos);
  };
  CHECK_NOTHROW(sk::spawn(3, refused, {.deadline = 60}));
}
