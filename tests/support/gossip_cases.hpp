// SPDX-License-Identifier: Apache-2.0
// What Gossip must do on any communicator of the host: written once, run over threads and over MPI.
#pragma once
#include <algorithm>
#include <chrono>
#include <thread>

#include <skein/parallel/average/gossip.hpp>
#include <skein/parallel/simulate/slowed.hpp>

#include "data_parallel_cases.hpp"

namespace gossip_cases {

namespace sk = skein;
namespace cases = data_parallel_cases;
using sk::parallel::Staleness;

/// One step by hand: rank r's weights are r, r * r; afterwards the mean over it and its neighbours; at the end that of all. A
/// third one is frozen.
template <class Comm> void averages_with_neighbors(Comm& world) {
  const int n = world.size(), r = world.rank();
  std::vector<double> weights(3), expected(2);
  sk::parallel::Replica<double, sk::Cpu> replica;
  replica.parameters = {weights.data(), 3};
  replica.stored = 3;
  replica.trained = {{0, 2}};
  sk::parallel::GossipPolicyState<Comm, double, 0> policy_state(world, replica);
  policy_state.start();
  const auto value = [&](int rank, std::size_t i) {
    return i == 0 ? static_cast<double>(rank) : static_cast<double>(rank * rank);
  };
  for (std::size_t i = 0; i < 2; ++i) weights[i] = value(r, i);
  weights[2] = r;
  const bool changed = policy_state.after_step({1, 1});
  RANK_CHECK(changed == (n > 1));
  const int left = (r + n - 1) % n, right = (r + 1) % n;
  for (std::size_t i = 0; i < 2; ++i)
    expected[i] = n == 1   ? value(r, i)
                  : n == 2 ? (value(0, i) + value(1, i)) / 2
                           : (value(left, i) + value(r, i) + value(right, i)) / 3;
  for (std::size_t i = 0; i < 2; ++i) RANK_CHECK(weights[i] == Approx(expected[i]).epsilon(1e-14));
  for (int step = 2; step < 5; ++step) (void)policy_state.after_step({step, 1});
  (void)policy_state.finish();
  double mean[2] = {0, 0};
  for (int q = 0; q < n; ++q) mean[0] += value(q, 0) / n, mean[1] += value(q, 1) / n;
  for (std::size_t i = 0; i < 2; ++i) RANK_CHECK(weights[i] == Approx(mean[i]).epsilon(1e-13));
  RANK_CHECK(weights[2] == r);
}

template <class Policy> cases::Result train(const Policy& policy, sk::FitOptions options) {
  cases::Points points;
  auto data = sk::data::from_tensors(points.x, sk::Extents{1, {4}}, points.y);
  cases::Model model{sk::Seed{3}};
  sk::Trainer trainer{model, skein::nn::Mse{}, sk::optim::Sgd{.lr = 0.1f}, policy};
  options.progress = false;
  options.threads = 1;
  const sk::History history = trainer.fit(data, options);
  (void)trainer.fit(data, options);
  cases::Result r{history.losses(), {}, 0};
  r.parameters.assign(std::as_const(model).parameters().begin(), std::as_const(model).parameters().end());
  cases::same_on_all_ranks(policy.comm(), std::as_const(model).parameters());
  return r;
}

/// On at most three ranks every rank is a neighbour of every other: with plain SGD and equal shares it is DataParallel.
template <class Comm> void equals_data_parallel(Comm& world) {
  const sk::FitOptions options{.epochs = 3, .loader = {.batch_per_rank = 6, .last = sk::data::LastBatch::drop}};
  const cases::Result ours = train(sk::parallel::Gossip{world}, options),
                      other = train(sk::parallel::DataParallel{world}, options);
  RANK_CHECK(ours.losses.size() == 3);
  RANK_CHECK(ours.losses.back() < ours.losses.front());
  if (world.size() <= 3) cases::require_same(ours, other, 1e-12);
  else RANK_CHECK(ours.parameters != other.parameters);
}

/// How far a rank runs ahead of a neighbour that is slow, in the first of ten trainings in which that is `expected` or more: on a
/// busy machine the others may be as slow.
template <class Bound, class Comm> double ahead_of_a_slow_one(Comm& world, double expected) {
  double ahead = -1;
  for (int trial = 0; trial < 10 && ahead < expected; ++trial) {
    cases::Points points;
    auto data = sk::data::from_tensors(points.x, sk::Extents{1, {4}}, points.y);
    cases::Model model{sk::Seed{3}};
    const sk::parallel::Slowed policy{sk::parallel::Gossip{world, Bound{}}, {.rank = 1, .seconds = 0.02}};
    sk::Trainer trainer{model, skein::nn::Mse{}, sk::optim::Sgd{.lr = 0.05f}, policy};
    (void)trainer.fit(data, {.epochs = 1, .batch = 10, .progress = false, .threads = 1});
    cases::same_on_all_ranks(world, std::as_const(model).parameters());
    ahead = static_cast<double>(world.all_reduce(trainer.train_step().policy_state().max_ahead(), sk::Max{}));
  }
  return ahead;
}

/// Weights of more than 4 kB, whose messages leave once the receiver takes them, and a rank's state of their training.
template <int Bound, class Comm> struct LongWeights {
  explicit LongWeights(Comm& world, std::size_t size = 1000)
      : weights(size, world.rank()), policy_state(world, replica_of(weights)) {
    policy_state.start();
  }
  static sk::parallel::Replica<double, sk::Cpu> replica_of(std::vector<double>& weights) {
    sk::parallel::Replica<double, sk::Cpu> replica;
    replica.parameters = {weights.data(), weights.size()};
    replica.stored = static_cast<long>(weights.size());
    return replica;
  }
  std::vector<double> weights;
  sk::parallel::GossipPolicyState<Comm, double, Bound> policy_state;
};

/// Such weights, and a rank so slow that many messages lie between two meetings: each meeting ends, and what it has brought is
/// averaged at the next step.
template <int Bound, class Comm> void meets_with_long_weights(Comm& world) {
  LongWeights<Bound, Comm> own(world);
  auto& [weights, policy_state] = own;
  std::int64_t step = 0;
  for (const int steps : {1, 8, 8}) {
    std::fill(weights.begin(), weights.end(), world.rank());
    for (int i = 0; i < steps; ++i) {
      if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(4));
      (void)policy_state.after_step({++step, 1});
    }
    std::vector<double> one{1};
    policy_state.reduce({one.data(), one.size()});
    RANK_CHECK(one[0] == world.size());
    if (steps > 1) continue;
    (void)policy_state.after_step({++step, 1});
    if (world.size() > 1 && world.rank() == 0) RANK_CHECK(weights[0] > 0);
  }
  (void)policy_state.finish();
  cases::same_on_all_ranks(world, weights);
}

/// Ranks that are slow in turns, which another policy holds every few steps until all have come: it knows nothing of Gossip's
/// messages, and none that a neighbour waits for is kept back.
template <int Bound, class Comm> void another_policy_meets(Comm& world) {
  LongWeights<Bound, Comm> own(world);
  auto& [weights, policy_state] = own;
  for (std::int64_t step = 1; step <= 60; ++step) {
    if ((step / 5) % world.size() == world.rank()) std::this_thread::sleep_for(std::chrono::milliseconds(3));
    (void)policy_state.after_step({step, 1});
    if (step % 7 != 0) continue;
    std::vector<double> one{1};
    world.all_reduce(one, sk::Sum{});
    RANK_CHECK(one[0] == world.size());
  }
  (void)policy_state.finish();
  cases::same_on_all_ranks(world, weights);
}

/// The same, where the other policy's ranks have a communicator of their own, and a message is longer than what a pair of
/// processes has room for: who waits there moves none of it.
template <int Bound, class Comm> void another_communicator_meets(Comm& world) {
  Comm own = world.split(0, world.rank());
  LongWeights<Bound, Comm> all(own, (std::size_t{10} << 20) / sizeof(double));
  for (std::int64_t step = 1; step <= 6; ++step) {
    if (step % 2 == world.rank() % 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    (void)all.policy_state.after_step({step, 1});
    std::vector<double> one{1};
    world.all_reduce(one, sk::Sum{});
    RANK_CHECK(one[0] == world.size());
  }
  (void)all.policy_state.finish();
  cases::same_on_all_ranks(world, all.weights);
}

}  // namespace gossip_cases
