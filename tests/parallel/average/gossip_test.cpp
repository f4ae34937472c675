// SPDX-License-Identifier: Apache-2.0
// Gossip over threads; tests/distributed has the same over processes.
#include "../../support/gossip_cases.hpp"

#include <thread>

#include <skein/comm/thread/spawn.hpp>

namespace cases = gossip_cases;
namespace sk = skein;
using sk::parallel::Staleness, sk::parallel::unbounded;

TEST_CASE("gossip averages with the neighbours on the ring", "[parallel]") {
  for (int n : {1, 2, 3, 4, 7})
    CHECK_NOTHROW(sk::spawn(n, [](sk::ThreadComm& w) { cases::averages_with_neighbors(w); }, {.deadline = 60}));
}

TEST_CASE("gossip of at most three ranks is data-parallel", "[parallel]") {
  for (int n : {1, 2, 3, 5})
    CHECK_NOTHROW(sk::spawn(n, [](sk::ThreadComm& w) { cases::equals_data_parallel(w); }, {.deadline = 60}));
}

TEST_CASE("gossip waits for a slow neighbour as far as the bound says", "[parallel]") {
  for (int n : {2, 4}) {
    INFO(n << " ranks");
    double ahead[3] = {-1, -1, -1};
    CHECK_NOTHROW(sk::spawn(n,
                            [&](sk::ThreadComm& w) {
                              const double zero = cases::ahead_of_a_slow_one<Staleness<0>>(w),
                                           two = cases::ahead_of_a_slow_one<Staleness<2>>(w),
                                           any = cases::ahead_of_a_slow_one<Staleness<unbounded>>(w);
                              if (w.rank() == 0) ahead[0] = zero, ahead[1] = two, ahead[2] = any;
                            },
                            {.deadline = 60}));
    CHECK(ahead[0] == 0);
    CHECK(ahead[1] == 2);
    CHECK(ahead[2] > 3);
  }
}

TEST_CASE("gossip of long weights with a slow neighbour comes to the end of each epoch", "[parallel]") {
  for (int n : {2, 3})
    CHECK_NOTHROW(sk::spawn(n,
                            [](sk::ThreadComm& w) {
                              cases::meets_with_long_weights<4>(w);
                              cases::meets_with_long_weights<unbounded>(w);
                            },
                            {.deadline = 20}));
}

TEST_CASE("gossip beside a policy that waits for all ranks comes to the end of each step", "[parallel]") {
  for (int n : {2, 3, 4})
    CHECK_NOTHROW(sk::spawn(n,
                            [](sk::ThreadComm& w) {
                              cases::another_policy_meets<1>(w);
                              cases::another_policy_meets<3>(w);
                              cases::another_policy_meets<5>(w);
                            },
                            {.deadline = 20}));
}

TEST_CASE("weights of neighbours that a fit has left are not averaged with those that the next one begins with", "[parallel]") {
  for (int n : {2, 3})
    CHECK_NOTHROW(sk::spawn(n,
                            [](sk::ThreadComm& world) {
                              std::vector<double> weights(3, 1.0);
                              sk::parallel::Replica<double, sk::Cpu> replica;
                              replica.parameters = {weights.data(), weights.size()};
                              replica.stored = 3;
                              sk::parallel::GossipPolicyState<sk::ThreadComm, double, 2> policy_state(world, replica);
                              policy_state.start();
                              const auto steps = [&](int first) {
                                for (int step = first; step < first + 2; ++step) (void)policy_state.after_step({step, 1});
                              };
                              if (world.rank() == 0) steps(1);
                              world.barrier();
                              if (world.rank() > 0) steps(1);  // rank 0 has not heard of them
                              policy_state.barrier();          // a callback has thrown, and a file is loaded
                              weights.assign(3, 5.0);
                              policy_state.start();
                              steps(3);
                              RANK_CHECK(weights == std::vector<double>(3, 5.0));
                              (void)policy_state.finish();
                            },
                            {.deadline = 60}));
}

TEST_CASE("a neighbour that does not arrive is named", "[parallel]") {
  std::string message;
  try {
    sk::spawn(3,
              [](sk::ThreadComm& world) {
                std::vector<double> weights(2000);
                sk::parallel::Replica<double, sk::Cpu> replica;
                replica.parameters = {weights.data(), weights.size()};
                replica.stored = static_cast<long>(weights.size());
                sk::parallel::GossipPolicyState<sk::ThreadComm, double, 1> policy_state(world, replica);
                policy_state.start();
                if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
                else
                  for (int step = 1; step < 5; ++step) (void)policy_state.after_step({step, 1});
              },
              {.deadline = 0.6});
  } catch (const sk::CommError& e) { message = e.what(); }
  INFO(message);
  CHECK(message.find("Gossip") != std::string::npos);
  CHECK(message.find("rank 1 did not arrive within 0.6 s") != std::string::npos);
}

TEST_CASE("a trainer whose fit an exception ended on all ranks goes without waiting for its neighbours' next messages",
          "[parallel]") {
  for (int n : {2, 3}) {
    const auto begin = std::chrono::steady_clock::now();
    CHECK_NOTHROW(sk::spawn(n,
                            [](sk::ThreadComm& world) {
                              {
                                cases::LongWeights<2, sk::ThreadComm> own(world);
                                for (int step = 1; step <= 3 + world.rank() % 2; ++step)
                                  (void)own.policy_state.after_step({step, 1});
                              }
                              world.barrier();
                            },
                            {.deadline = 20}));
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
  }
}
