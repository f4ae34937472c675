// SPDX-License-Identifier: Apache-2.0
#include "skein/comm/sim/sim_comm.hpp"

#include <catch2/catch.hpp>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "../../support/collectives.hpp"
#include "skein/comm/algorithms/all_reduce.hpp"
#include "skein/comm/sim/delayed.hpp"
#include "skein/comm/thread/spawn.hpp"
#include "skein/plan/step_cost.hpp"

namespace sk = skein;
using namespace sk::plan;
using Catch::Matchers::Contains;
using Catch::Matchers::Equals;

static_assert(sk::AllReduces<sk::SimComm> && sk::StartsAllReduce<sk::SimComm> && sk::ReducesToRoot<sk::SimComm> &&
              sk::ReduceScatters<sk::SimComm>);
static_assert(sk::Broadcasts<sk::SimComm> && sk::AllGathers<sk::SimComm> && sk::AllToAlls<sk::SimComm> &&
              sk::Sends<sk::SimComm> && sk::Splits<sk::SimComm>);

namespace {
constexpr Network flat{.near = {2e-6, 1e-9}, .far = {9, 9}, .gamma = 1e-10};
constexpr Network cluster(int node) { return {.near = {1e-6, 1e-10}, .far = {2e-5, 1e-9}, .node = node, .gamma = 5e-11}; }

template <class F> std::string thrown(int ranks, F&& f) {
  try {
    sk::simulate(ranks, {}, f);
  } catch (const sk::CommError& e) { return e.what(); }
  return "";
}
double second(sk::SimComm& world) { return world.now(); }
}  // namespace

TEST_CASE("every collective of a simulated world equals its serial twin, bit for bit") {
  const int ranks = GENERATE(1, 2, 3, 4, 7);
  CHECK_NOTHROW(sk::simulate(ranks, {.network = cluster(2)}, [](sk::SimComm& world) { collectives::everything(world, 3000); }));
}

TEST_CASE("a message comes alpha + beta bytes after it was sent, and its receiver waits till then") {
  const sk::SimReport r = sk::simulate(3, {.network = {{1, 0.5}, {100, 7}, 2, 0}}, [](sk::SimComm& world) {
    std::vector<char> data(10);
    if (world.rank() == 0) {
      world.compute(4);
      world.send(data, 1);  // within the node: 1 + 5
      world.send(data, 2);  // to the other: 100 + 70, once the first has left
      collectives::require(second(world) == 4 + 6 + 170, "the sender's clock");
    } else {
      world.compute(world.rank() == 1 ? 20 : 1);  // it came before rank 1 asked for it
      world.recv(data, 0);
      collectives::require(second(world) == (world.rank() == 1 ? 20 : 180), "the receiver's clock");
    }
  });
  CHECK(r.seconds() == 180);
  CHECK(r.ranks[0].messages == 2);
  CHECK(r.bytes() == 20);
  CHECK(r.ranks[2].waited == 179);
  CHECK(r.ranks[1].compute == 20);
  CHECK_THAT(r.text(), Contains("simulated: 3 ranks, 180 s"));
}

TEST_CASE("whoever comes first by the clock is received first from any rank") {
  for (const bool late : {false, true})
    sk::simulate(4, {.network = {{0.5, 0}, {0.5, 0}, 0, 0}, .slow = {1, 3, late ? 9.0 : 2.0, 1}}, [&](sk::SimComm& world) {
      int value = world.rank();
      const std::span<int> one(&value, 1);
      if (world.rank() != 0) {
        world.compute(world.rank() == 3 ? 4.5 : 1);  // 3; 2 or 9; 4.5
        world.send(one, 0, 7);
        return;
      }
      std::vector<int> order;
      for (int i = 1; i < 4; ++i) order.push_back(world.recv(one, sk::any_rank, 7));
      collectives::require(order == (late ? std::vector<int>{1, 3, 2} : std::vector<int>{2, 1, 3}), "the order of arrival");
      collectives::require(second(world) == (late ? 9.5 : 5.0), "the clock of the last");
    });
}

TEST_CASE("receives get messages in the order in which they were started, whichever is waited for first") {
  sk::simulate(3, {.network = {{0.5, 0.1}, {0.5, 0.1}, 0, 0}}, [](sk::SimComm& world) {
    std::vector<int> x(3);
    const auto part = [&](std::size_t i) { return std::span<int>(x).subspan(i, 1); };
    if (world.rank() != 0) {
      x[0] = world.rank();
      world.compute(world.rank());
      world.send(part(0), 0, 7);
      if (world.rank() == 1) world.compute(5), x[0] = 11, world.send(part(0), 0, 7);
      return;
    }
    auto first = world.irecv(part(0), sk::any_rank, 7), second = world.irecv(part(1), sk::any_rank, 7),
         third = world.irecv(part(2), 1, 7);  // behind those: not for rank 1's first message
    third.wait();
    second.wait();
    collectives::require(x[1] == 2 && second.peer() == 2, "the message that came second");
    first.wait();
    collectives::require(x[0] == 1 && first.peer() == 1, "the message that came first");
    collectives::require(x[2] == 11, "the second message of a rank");
  });
  // Two messages of one rank stay in their order, though the second takes less time.
  sk::simulate(3, {.network = {{0.1, 0.1}, {0.1, 0.1}, 0, 0}}, [](sk::SimComm& world) {
    std::vector<char> longer(400), shorter(1), other(1000);
    if (world.rank() == 1) world.send(longer, 0, 7), world.send(shorter, 0, 7);
    if (world.rank() == 2) world.send(other, 0, 1);
    if (world.rank() != 0) return;
    world.compute(200);
    world.recv(other, 2, 1);  // for 100 s
    world.recv(longer, sk::any_rank, 7);
    world.recv(shorter, sk::any_rank, 7);
  });
}

TEST_CASE("a poll is true once the clock has come to it, and polling lets the clock go on") {
  sk::simulate(2, {.network = {{1, 0}, {1, 0}, 0, 0}}, [](sk::SimComm& world) {
    float x = 1;
    const std::span<float> one(&x, 1);
    if (world.rank() == 0) world.compute(2);
    auto request = world.start_all_reduce(one);
    if (world.rank() == 1) {
      collectives::require(!request.poll(), "too early");
      world.compute(5);
      collectives::require(request.poll() && x == 2, "what has gone on in the background");
      collectives::require(second(world) < 5.001, "nothing to wait for");
    } else {
      int polls = 0;
      while (!request.poll()) ++polls;
      collectives::require(polls > 1 && second(world) >= 3 && second(world) < 3.01, "the end of the all-reduce by polling");
    }
  });
}

TEST_CASE("what a poll takes is an option") {
  const auto report = sk::simulate(2, {.network = {{1, 0}, {1, 0}, 0, 0}, .poll = 0.125}, [](sk::SimComm& world) {
    int x = 0;
    const std::span<int> one(&x, 1);
    if (world.rank() == 1) {
      world.compute(3);
      world.send(one, 0);
      return;
    }
    auto request = world.irecv(one, 1);
    for (int i = 0; i < 3; ++i) collectives::require(!request.poll(), "it comes at 4");
    collectives::require(second(world) == 7 * 0.125, "1, 2 and 4 of them: who looks in vain looks less often");
    request.wait();
  });
  CHECK(report.ranks[0].clock == 4);
}

TEST_CASE("an all-reduce takes the seconds of its closed form, and counts the messages of its table") {
  for (const auto algorithm : {AllReduceAlgorithm::ring, AllReduceAlgorithm::recursive_doubling, AllReduceAlgorithm::torus,
                               AllReduceAlgorithm::hierarchical})
    for (const Network& network : {flat, cluster(4)}) {
      const int ranks = 16;
      const std::size_t count = 16 * 48;
      const double bytes = 4.0 * static_cast<double>(count);
      const sk::SimReport r = sk::simulate(ranks, {.network = network, .algorithm = algorithm}, [&](sk::SimComm& world) {
        std::vector<float> x(count, 1.0f);
        world.all_reduce(x);
        collectives::require(x[5] == 16, "the sum");
      });
      INFO(name_of(algorithm) << ", nodes of " << network.node);
      const int columns = torus_columns(network, ranks);
      const double closed[] = {ring_seconds(network, ranks, bytes), recursive_doubling_seconds(network, ranks, bytes),
                               torus_seconds(network, ranks, bytes, columns), hierarchical_seconds(network, ranks, bytes)};
      CHECK(r.seconds() == Approx(closed[static_cast<int>(algorithm)]).epsilon(1e-12));
      with_table({algorithm, columns, network.node ? network.node : ranks, 0}, ranks, static_cast<long>(count),
                 [&](const auto& table) {
                   for (int q = 0; q < ranks; ++q) {
                     const SentByRank sent = sent_by(table, q);
                     CHECK(r.ranks[static_cast<std::size_t>(q)].messages == sent.messages);
                     CHECK(r.ranks[static_cast<std::size_t>(q)].bytes == 4 * sent.values);
                   }
                   return 0;
                 });
    }
}

TEST_CASE("the algorithms of comm/algorithms run over simulated messages: their traffic and their closed forms") {
  // The same function over real threads says what really left each rank.
  const auto program = [](auto& world, std::vector<sk::comm::Traffic>& traffic) {
    const std::size_t me = static_cast<std::size_t>(world.rank());
    std::vector<float> x(960, 1.0f);
    traffic[4 * me] = sk::comm::ring_all_reduce(world, x);
    traffic[4 * me + 1] = sk::comm::recursive_doubling_all_reduce(world, x);
    traffic[4 * me + 2] = sk::comm::torus_all_reduce(world, x, 3);
    traffic[4 * me + 3] = sk::comm::hierarchical_all_reduce(world, x, 4);
  };
  std::vector<sk::comm::Traffic> simulated(24), real(24);
  const sk::SimReport r = sk::simulate(6, {.network = flat}, [&](sk::SimComm& world) { program(world, simulated); });
  sk::spawn(6, [&](sk::ThreadComm& world) { program(world, real); });
  CHECK(simulated == real);
  for (std::size_t q = 0; q < 6; ++q) {
    long messages = 0, bytes = 0;
    for (std::size_t k = 0; k < 4; ++k) messages += real[4 * q + k].messages, bytes += real[4 * q + k].bytes;
    CHECK(r.ranks[q].messages == messages);
    CHECK(r.ranks[q].bytes == bytes);
  }
  Network no_sum = flat;  // the sums of these are made by the caller's thread
  no_sum.gamma = 0;
  const auto seconds = [&](auto&& f) { return sk::simulate(8, {.network = no_sum}, f).seconds(); };
  CHECK(seconds([](sk::SimComm& w) { sk::comm::ring_all_reduce(w, std::vector<float>(800)); }) ==
        Approx(ring_seconds(no_sum, 8, 3200)));
  CHECK(seconds([](sk::SimComm& w) { sk::comm::recursive_doubling_all_reduce(w, std::vector<float>(800)); }) ==
        Approx(recursive_doubling_seconds(no_sum, 8, 3200)));
  CHECK(seconds([](sk::SimComm& w) { sk::comm::torus_all_reduce(w, std::vector<float>(800), 4); }) ==
        Approx(torus_seconds(no_sum, 8, 3200, 4)));
  CHECK(seconds([](sk::SimComm& w) { sk::comm::hierarchical_all_reduce(w, std::vector<float>(800), 8); }) ==
        Approx(hierarchical_seconds(no_sum, 8, 3200)));
}

TEST_CASE("a collective waits for the slowest rank, and what is started goes on while one computes") {
  const auto run = [](bool overlap) {
    return sk::simulate(4, {.network = {{0, 0.125}, {0, 0.125}, 0, 0}, .algorithm = AllReduceAlgorithm::ring, .slow = {1, 2}},
                        [&](sk::SimComm& world) {
                          std::vector<float> x(16);  // 64 bytes: 6 messages of 16, 2 s each
                          world.compute(5);
                          auto request = world.start_all_reduce(x);
                          if (!overlap) request.wait();
                          world.compute(10);
                          request.wait();
                        })
        .seconds();
  };
  CHECK(run(false) == 10 + 12 + 20);
  CHECK(run(true) == 30);
}

TEST_CASE("the same seed gives the same times, another seed others; without jitter there is none") {
  const auto times = [](std::uint64_t seed, double jitter) {
    std::vector<double> clocks;
    const sk::SimReport r =
        sk::simulate(5, {.network = cluster(2), .jitter = jitter, .seed = sk::Seed{seed}}, [](sk::SimComm& world) {
          std::vector<double> x(100);
          for (int i = 0; i < 3; ++i) {
            world.compute(1e-4);
            world.all_reduce(x);
            if (world.rank() == 0) world.send(x, 4);
            if (world.rank() == 4) world.recv(x, sk::any_rank);
          }
        });
    for (const sk::SimRank& rank : r.ranks) clocks.push_back(rank.clock);
    return clocks;
  };
  CHECK(times(1, 0.1) == times(1, 0.1));
  CHECK(times(1, 0.1) != times(2, 0.1));
  CHECK(times(1, 0) == times(2, 0));
}

TEST_CASE("servers are what their workers wait for: pushes and pulls take their closed form") {
  const Level level{1e-3, 1e-6};
  for (const int servers : {1, 2, 4}) {
    const int workers = 8;
    const double simulated = sk::simulate(servers + workers, {.network = {level, level, 0, 0}}, [&](sk::SimComm& world) {
                               std::vector<char> part(static_cast<std::size_t>(8000 / servers));
                               if (world.rank() < servers) {
                                 std::vector<int> who(static_cast<std::size_t>(workers));
                                 for (int& w : who) w = world.recv(part, sk::any_rank);
                                 std::vector<decltype(world.isend(part, 0))> sent;
                                 for (const int w : who) sent.push_back(world.isend(part, w));
                                 for (auto& s : sent) s.wait();
                                 return;
                               }
                               std::vector<decltype(world.isend(part, 0))> sent;
                               for (int s = 0; s < servers; ++s) sent.push_back(world.isend(part, (world.rank() + s) % servers));
                               for (auto& s : sent) s.wait();
                               for (int s = 0; s < servers; ++s) world.recv(part, (world.rank() + s) % servers);
                             }).seconds();
    INFO(servers << " servers");
    CHECK(simulated == Approx(server_seconds(level, workers, servers, 8000)).epsilon(servers == 1 ? 1e-9 : 0.2));
  }
}

TEST_CASE("parts of a simulated world have their own links") {
  sk::simulate(6, {.network = cluster(3), .algorithm = AllReduceAlgorithm::ring}, [](sk::SimComm& world) {
    collectives::require(world.node_size() == 3, "the ranks of a node");
    const double begin = second(world);
    sk::SimComm node = world.split(world.rank() / 3), across = world.split(world.rank() % 3, -world.rank());
    collectives::require(
        node.size() == 3 && across.size() == 2 && across.rank() == 1 - world.rank() / 3 && across.node_size() == 1,
        "sizes and places");
    const double split = second(world);
    collectives::require(split > begin, "a split is a collective");
    std::vector<float> x(300, 1.0f);
    world.compute(1 - split);  // all at the same time
    node.all_reduce(x);
    collectives::require(x[0] == 3 && std::abs(second(world) - 1 - ring_seconds(cluster(0), 3, 1200)) < 1e-12, "within the node");
    world.compute(2 - second(world));
    across.all_reduce(x);
    const Network far{cluster(3).far, {}, 0, cluster(3).gamma};
    collectives::require(x[0] == 6 && std::abs(second(world) - 2 - ring_seconds(far, 2, 1200)) < 1e-12, "between nodes");
  });
}

TEST_CASE("time that a thread really computes can count") {
  const sk::SimReport r = sk::simulate(2, {.slow = {1, 100}, .measured = 2}, [](sk::SimComm& world) {
    volatile double x = 0;
    for (int i = 0; i < 2'000'000; ++i) x = x + 1;
    world.barrier();
  });
  CHECK(r.ranks[0].compute > 1e-4);
  CHECK(r.ranks[1].compute > 20 * r.ranks[0].compute);
  CHECK(r.ranks[0].waited > 10 * r.ranks[0].compute);
}

TEST_CASE("what cannot end is named") {
  CHECK_THAT(thrown(3,
                    [](sk::SimComm& world) {
                      int x = 0;
                      if (world.rank() == 0) world.recv(std::span<int>(&x, 1), 1, 4);
                      if (world.rank() == 1) world.barrier();
                    }),
             Equals("the simulation stands still: rank 0 waits for a message from rank 1 (tag 4); rank 1 waits in barrier (call "
                    "0); rank 2 has returned"));
  CHECK_THAT(
      thrown(2,
             [](sk::SimComm& world) {
               std::vector<float> x(world.rank() ? 3 : 4);
               world.all_reduce(x);
             }),
      Contains(
          "collective call 0 differs between ranks: rank 0: all_reduce(Sum) of 4 float; rank 1: all_reduce(Sum) of 3 float"));
  CHECK_THAT(thrown(3,
                    [](sk::SimComm& world) {
                      if (world.rank() == 1) throw sk::ShapeError("the third layer does not fit");
                      world.barrier();
                    }),
             Equals("rank 1 failed: the third layer does not fit"));
  CHECK_THAT(thrown(2,
                    [](sk::SimComm& world) {
                      std::vector<int> x(3);
                      if (world.rank() == 0) world.send(std::span<int>(x.data(), 2), 1);
                      else world.recv(x, 0);
                    }),
             Contains("the message has 8 bytes, the receiver's span 12"));
  CHECK_THROWS_WITH(sk::simulate(0, {}, [](sk::SimComm&) {}), "simulate: there must be at least one rank; asked for 0");
  CHECK_THROWS_WITH(sk::simulate(1, {.slow = {0}}, [](sk::SimComm&) {}), Contains(".slow are factors"));
  const double never = std::numeric_limits<double>::infinity(), none = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {-1e-6, never, none}) {
    const auto beats = [](sk::SimComm& world) { world.barrier(); };
    CHECK_THROWS_WITH(sk::simulate(2, {.network = {{bad, 0}, {1e-6, 0}, 0, 0}}, beats),
                      Contains("simulate: a message, a byte or its sum takes ") && Contains("give finite ones, 0 or more"));
    CHECK_THROWS_WITH(sk::simulate(2, {.network = {{0, 0}, {0, bad}, 1, 0}}, beats), Contains("simulate: a message, a byte"));
    CHECK_THROWS_WITH(sk::simulate(2, {.network = {{0, 0}, {0, 0}, 0, bad}}, beats), Contains("simulate: a message, a byte"));
    CHECK_THROWS_WITH(sk::simulate(2, {.slow = {1, bad}}, beats), Contains(".slow are factors"));
    CHECK_THROWS_WITH(sk::simulate(2, {.jitter = bad}, beats), Contains(".jitter and .measured are 0 or more"));
    CHECK_THROWS_WITH(sk::simulate(2, {.poll = bad}, beats), Contains("a poll takes time"));
    CHECK_THROWS_WITH(sk::simulate(1, {}, [&](sk::SimComm& world) { world.compute(bad); }), Contains("compute: seconds are 0"));
    CHECK_THROWS_WITH((sk::SlowNetwork{{{0, bad}, {0, 0}, 0, 0}}), Contains("SlowNetwork: a message, a byte"));
    CHECK_THROWS_WITH((sk::SlowNetwork{{}, bad}), Contains("SlowNetwork: a message, a byte"));
  }
}

TEST_CASE("a signal that ends a simulated fit is thrown as it is") {
  CHECK_THROWS_AS(sk::simulate(2, {},
                               [](sk::SimComm& world) {
                                 world.barrier();
                                 throw sk::Interrupted(2, "fit: SIGINT");
                               }),
                  sk::Interrupted);
}
