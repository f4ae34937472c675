// SPDX-License-Identifier: Apache-2.0
#include "skein/comm/sim/delayed.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <vector>

#include "../../support/collectives.hpp"
#include "skein/comm/algorithms/all_reduce.hpp"
#include "skein/comm/sim/sim_comm.hpp"
#include "skein/comm/thread/spawn.hpp"

namespace sk = skein;
using World = sk::Delayed<sk::ThreadComm>;
static_assert(sk::AllReduces<World> && sk::StartsAllReduce<World> && sk::Sends<World>);

namespace {
/// Two rounds of computing and an all-reduce of 4,000 bytes by messages; the ranks compute for different times.
template <class Comm> void program(Comm& world) {
  std::vector<float> x(1000, 1.0f);
  for (int step = 0; step < 2; ++step) {
    world.compute(0.01 * (1 + world.rank() % 3));
    sk::comm::ring_all_reduce(world, x);
  }
  collectives::require(x[7] == static_cast<float>(world.size() * world.size()), "the sums");
}
double dilated(int ranks, const sk::plan::Network& links) {
  sk::SlowNetwork network(links);
  const auto begin = std::chrono::steady_clock::now();
  sk::spawn(ranks, [&](sk::ThreadComm& threads) {
    World world(threads, network);
    program(world);
  });
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}
}  // namespace

TEST_CASE("a delayed world gives the results of the one behind it", "[delayed]") {
  for (const int ranks : {1, 3}) {
    sk::SlowNetwork network({{1e-6, 1e-12}, {1e-6, 1e-12}, 0, 0});
    CHECK_NOTHROW(sk::spawn(ranks, [&](sk::ThreadComm& threads) {
      World world(threads, network);
      std::vector<double> x(500, 1.0), all(500 * static_cast<std::size_t>(ranks));
      world.all_reduce(x);
      world.all_gather(x, all);
      world.barrier();
      collectives::require(x[3] == ranks && all.back() == ranks, "collectives");
      if (world.rank() != 0) world.send(x, 0, world.rank());
      for (int r = 1; world.rank() == 0 && r < ranks; ++r)
        collectives::require(world.recv(x, sk::any_rank, r) == r, "the sender");
    }));
  }
}

TEST_CASE("a message that goes past the delay is not delayed") {
  sk::SlowNetwork network({{0.02, 0}, {0.02, 0}, 0, 0});
  sk::spawn(2, [&](sk::ThreadComm& threads) {
    World world(threads, network);
    int x = world.rank();
    const std::span<int> one(&x, 1);
    if (world.rank() == 1) threads.send(one, 0, 3);
    else world.recv(one, 1, 3);
    collectives::require(x == 1, "the message");
  });
}

TEST_CASE("nothing is there before its time, and what is started travels while one computes", "[delayed]") {
  sk::SlowNetwork network({{0.02, 0}, {0.02, 0}, 0, 0}, 0.02);
  sk::spawn(2, [&](sk::ThreadComm& threads) {
    World world(threads, network);
    std::vector<float> x(10);
    const auto begin = std::chrono::steady_clock::now();
    const auto passed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
    auto first = world.start_all_reduce(x);
    (void)first.poll();
    world.compute(0.03);
    world.barrier();  // the second over the same links
    collectives::require(passed() >= 0.04, "the barrier's own time");
    collectives::require(first.poll(), "done in the meantime");
    if (world.rank() == 0) world.send(x, 1);
    else world.recv(x, 0);
    collectives::require(passed() >= 0.06, "the message's time");
  });
}

TEST_CASE("a dilated run takes no less than the simulator says; bench/simulator.cpp has the other side", "[delayed]") {
  const sk::plan::Network links{{2e-3, 1e-7}, {4e-3, 2e-7}, 2, 0};
  for (const int ranks : {2, 4}) {
    const double simulated = sk::simulate(ranks, {.network = links}, [](sk::SimComm& world) { program(world); }).seconds();
    double least = 1e9;
    for (int trial = 0; trial < 10 && least > simulated * 3 + 0.5; ++trial) {  // other jobs may take the cores
      const double real = dilated(ranks, links);
      INFO(ranks << " ranks: simulated " << simulated << " s, real " << real << " s");
      CHECK(real >= simulated * 0.999);
      least = std::min(least, real);
    }
    CHECK(least <= simulated * 3 + 0.5);
  }
}
