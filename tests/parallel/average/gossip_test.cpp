// SPDX-License-Identifier: Apache-2.0
// Gossip over threads; tests/distributed has the same over processes.
#include "../../support/gossip_cases.hpp"

#include <mutex>
#include <thread>

#include <skein/comm/thread/spawn.hpp>

#include "../../support/failure_cases.hpp"

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
                              const double zero = cases::ahead_of_a_slow_one<Staleness<0>>(w, 0),
                                           two = cases::ahead_of_a_slow_one<Staleness<2>>(w, 2),
                                           any = cases::ahead_of_a_slow_one<Staleness<unbounded>>(w, 4);
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
                while (world.rank() == 1 && !world.engine().team().failure->happened())
                  std::this_thread::sleep_for(std::chrono::milliseconds(1));
                for (int step = 1; world.rank() != 1 && step < 5; ++step) (void)policy_state.after_step({step, 1});
              },
              {.deadline = 2.5});
  } catch (const sk::CommError& e) { message = e.what(); }
  INFO(message);
  CHECK(message.find("Gossip") != std::string::npos);
  CHECK(message.find("rank 1 did not arrive within 2.5 s") != std::string::npos);
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

namespace {
/// What n ranks throw, of which rank 1 has caught its own exception; none waits for a deadline.
template <class Function> std::vector<std::string> thrown_by(int n, Function&& work) {
  std::vector<std::string> texts(static_cast<std::size_t>(n));
  const auto begin = std::chrono::steady_clock::now();
  try {
    sk::spawn(n,
              [&](sk::ThreadComm& world) {
                texts[static_cast<std::size_t>(world.rank())] = failure_cases::thrown([&] { work(world); });
              },
              {.deadline = 20});
  } catch (const sk::CommError&) {}
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
  return texts;
}
/// Rank 1's training ends after three steps; the others make as many as they can.
template <int Bound> std::vector<std::string> left_by_one(int n, int reduces_every, long& made) {
  std::mutex mutex;
  return thrown_by(n, [&](sk::ThreadComm& world) {
    cases::LongWeights<Bound, sk::ThreadComm> own(world);
    auto& state = own.policy_state;
    std::vector<double> one{1};
    for (int step = 1; step <= (world.rank() == 1 ? 3 : 2000); ++step) {
      (void)state.after_step({step, 1});
      if (step % reduces_every == 0) state.reduce({one.data(), one.size()});
      if (world.rank() != 0) continue;
      const std::lock_guard lock(mutex);
      made = step;
    }
    if (world.rank() != 1) (void)state.finish();
  });
}
}  // namespace

TEST_CASE("neighbours of a rank that handles an exception of its own hear of it where they need that rank", "[parallel]") {
  for (int n : {2, 4}) {
    INFO(n << " ranks");
    long made = 0;
    std::vector<std::string> texts = left_by_one<2>(n, 5000, made);
    CHECK_THAT(texts[0], Catch::Contains("an exception has ended the fit of rank 1 after step 3"));
    CHECK(made <= 5);
    for (std::size_t r = 2; r < texts.size(); ++r) CHECK_THAT(texts[r], Catch::Contains("rank 1 after step 3"));
    made = 0;  // rank 0 may hear of it before its first step
    texts = left_by_one<unbounded>(n, 5, made);
    CHECK_THAT(texts[0], Catch::Contains("an exception has ended the fit of rank 1 after step 3"));
    CHECK(made < 5);
  }
}

TEST_CASE("a layer that throws on one rank of a Gossip ends the others, although that rank's trainer lives on", "[parallel]") {
  const auto train = [](const auto& policy) {
    std::vector<float> x(64 * 12, 0.5f);
    std::vector<std::int32_t> y(64, 1);
    if (policy.comm().rank() == 1)
      for (std::size_t i = 5; i < y.size(); i += 8) std::fill(&x[12 * i], &x[12 * i] + 12, failure_cases::backward_throws);
    const auto data = sk::data::InMemory<float>({1, {12}}, std::move(x), std::move(y), 4);
    failure_cases::Model model{sk::Seed{5}};
    sk::Trainer trainer{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.01f}, policy};
    return failure_cases::thrown([&] { (void)trainer.fit(data, {.epochs = 20, .batch = 32, .progress = false, .threads = 1}); });
  };
  for (int n : {2, 4})
    for (const bool bound : {false, true}) {
      CAPTURE(n, bound);
      std::vector<std::string> texts(static_cast<std::size_t>(n));
      (void)thrown_by(n, [&](sk::ThreadComm& world) {
        texts[static_cast<std::size_t>(world.rank())] =
            bound ? train(sk::parallel::Gossip{world, Staleness<2>{}}) : train(sk::parallel::Gossip{world});
      });
      for (std::size_t r = 0; r < texts.size(); ++r)
        CHECK_THAT(texts[r], Catch::Contains(r == 1 ? "a layer throws backward" : "rank 1 "));
    }
}
