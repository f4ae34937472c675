// SPDX-License-Identifier: Apache-2.0
// Capabilities of communicators: what is declared is there, what is there is declared, and what wraps a communicator forgets
// none.
#include <skein/comm/control/control_comm.hpp>
#include <skein/comm/counted.hpp>
#include <skein/comm/hierarchical/hierarchical.hpp>
#include <skein/comm/queries.hpp>
#include <skein/comm/self/self_comm.hpp>
#include <skein/comm/sim/delayed.hpp>
#include <skein/comm/sim/sim_comm.hpp>
#include <skein/comm/thread/spawn.hpp>

#include <catch2/catch.hpp>

#include "../support/rank_check.hpp"

namespace sk = skein;
using sk::comm::Capabilities, sk::comm::Capability, sk::comm::capabilities_of, sk::comm::first_capability_fault;

namespace {
/// Has and declares everything; its split gives one of its kind.
struct Everything : sk::SelfComm {
  static constexpr Capabilities capabilities = [] {
    Capabilities all;
    for (unsigned i = 0; i < sk::comm::capability_count; ++i) all = all | Capabilities{Capability{i}};
    return all;
  }();
  static constexpr long bucket_bytes = 7, first_bucket_bytes = 5;
  int node_size() const { return 3; }
  int node_rank() const { return 2; }
  bool one_process() const { return true; }
  sk::Cpu where() const { return {}; }
  void check() const { ++*checks; }
  void replayed() { ++*checks; }
  double deadline() const { return 11; }
  void fail(const std::string& message) { throw sk::CommError("all: " + message); }
  sk::ReductionOrder order() const { return sk::ReductionOrder::native; }
  double now() { return 13; }
  double waited() { return 17; }
  void compute(double seconds) { computed += seconds; }
  Everything split(int, int = 0) { return {}; }
  sk::comm::SharedPages share(std::size_t bytes) { return {pages, bytes}; }

  std::shared_ptr<int> checks = std::make_shared<int>(0);
  std::shared_ptr<int> pages = std::make_shared<int>(19);
  double computed = 0;
};

constexpr Capabilities all = Everything::capabilities;
template <class C> constexpr bool sound = first_capability_fault<C>() == sk::comm::capability_count;
static_assert(sound<Everything> && sound<sk::SelfComm> && sound<sk::ThreadComm> && sound<sk::SimComm> && sound<sk::ControlComm>);

// What wraps declares all that is inside, but for what it names; and what it declares is there. A capability that is added to the
// list, and handed on by nobody, does not compile here.
using Delayed = sk::Delayed<Everything>;
using Hierarchical = sk::Hierarchical<Everything>;
static_assert(sound<sk::Counted<Everything>> && capabilities_of<sk::Counted<Everything>> == all - Capability::splits);
static_assert(sound<Delayed> && capabilities_of<Delayed> == all - Capabilities{Capability::splits, Capability::clocks});
static_assert(sound<Hierarchical>);
static_assert(capabilities_of<Hierarchical> == all - Capabilities{Capability::splits, Capability::orders, Capability::failures,
                                                                  Capability::node_places, Capability::shares});
static_assert(sound<sk::Counted<sk::Delayed<sk::ThreadComm>>> && sound<sk::Counted<sk::SelfComm>>);
static_assert(capabilities_of<sk::Delayed<sk::SelfComm>> == Capabilities{Capability::nodes, Capability::computes});

// Near misses: the first fault is named by the capability.
struct Undeclared : sk::SelfComm {
  double deadline() const { return 1; }
};
struct NotThere : sk::SelfComm {
  static constexpr Capabilities capabilities = sk::SelfComm::capabilities | Capabilities{Capability::computes};
};
struct OtherResult : sk::SelfComm {
  static constexpr Capabilities capabilities = sk::SelfComm::capabilities | Capabilities{Capability::clocks};
  float now() { return 0; }
  double waited() { return 0; }
};
struct SplitsToAnother : sk::SelfComm {};
static_assert(first_capability_fault<Undeclared>() == static_cast<unsigned>(Capability::deadlines));
static_assert(first_capability_fault<NotThere>() == static_cast<unsigned>(Capability::computes));
static_assert(first_capability_fault<OtherResult>() == static_cast<unsigned>(Capability::clocks));
static_assert(first_capability_fault<SplitsToAnother>() == static_cast<unsigned>(Capability::splits));

struct Unknown {};  // declares nothing: what is asked of it has the answer of those that do not know
static_assert(capabilities_of<Unknown> == Capabilities{});
}  // namespace

TEST_CASE("what wraps a communicator hands on what it was asked", "[comm]") {
  Everything inner;
  sk::Counted counted{inner};
  CHECK((counted.node_size() == 3 && counted.node_rank() == 2 && counted.one_process() && counted.deadline() == 11));
  CHECK((counted.order() == sk::ReductionOrder::native && counted.now() == 13 && counted.waited() == 17));
  counted.check();
  counted.replayed();
  CHECK(*inner.checks == 2);
  counted.compute(2.5);
  CHECK(inner.computed == 2.5);
  CHECK(counted.share(sizeof(int)).span<int>()[0] == 19);
  CHECK((decltype(counted)::bucket_bytes == 7 && decltype(counted)::first_bucket_bytes == 5));
  CHECK_THROWS_WITH(sk::comm::fail_all(counted, "stop"), "all: stop");
}

TEST_CASE("what no communicator declares has an answer too", "[comm]") {
  sk::SelfComm alone;
  CHECK((sk::comm::node_size(alone) == 1 && sk::comm::node_rank(alone) == 0 && !sk::comm::one_process(alone)));
  CHECK(sk::comm::deadline(alone) == sk::CommOptions{}.deadline);
  CHECK_THROWS_WITH(sk::comm::fail_all(alone, "stop"), "stop");
  const double before = sk::comm::now(alone);
  CHECK(sk::comm::now(alone) >= before);
}

TEST_CASE("a failure behind a wrapper ends all ranks", "[comm]") {
  CHECK_THROWS_WITH(sk::spawn(2,
                              [](sk::ThreadComm& world) {
                                sk::Counted counted{world};
                                RANK_CHECK(sk::comm::deadline(counted) == 60);
                                if (counted.rank() == 1) {
                                  try {
                                    sk::comm::fail_all(counted, "rank 0 was never heard of");
                                  } catch (const sk::CommError&) {}  // the other rank is told all the same
                                } else {
                                  counted.barrier();
                                }
                              },
                              {.deadline = 60}),
                    Catch::Contains("rank 0 was never heard of"));
}

TEST_CASE("threads of a node's process share its cores behind a hierarchy too", "[comm]") {
  sk::spawn(4, [](sk::ThreadComm& world) {
    sk::Hierarchical levels{world, 2};
    RANK_CHECK(levels.one_process());
    RANK_CHECK(levels.deadline() == world.deadline());
  });
}
