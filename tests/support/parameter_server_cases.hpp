// SPDX-License-Identifier: Apache-2.0
// What ParameterServer must do on any communicator of the host with at least two ranks: written once, run over threads and over
// MPI.
#pragma once
#include <functional>
#include <cstdio>
#include <string>

#include <skein/nn/linear.hpp>
#include <skein/optim/schedule.hpp>
#include <skein/parallel/server/parameter_server.hpp>
#include <skein/parallel/simulate/slowed.hpp>

#include "data_parallel_cases.hpp"

namespace parameter_server_cases {

namespace sk = skein;
namespace nn = skein::nn;
namespace cases = data_parallel_cases;
using cases::Model, cases::Points;
using sk::parallel::LateRate, sk::parallel::ParameterServerOptions, sk::parallel::Staleness, sk::parallel::unbounded;

template <class Policy, class Optimizer> struct Training {
  Points points;
  decltype(sk::data::from_tensors(std::declval<std::vector<float>&>(), sk::Extents{}, std::declval<std::vector<float>&>())) data;
  Model model{sk::Seed{3}};
  sk::Trainer<Model, nn::Mse, Optimizer, Policy> trainer;
  Training(const Policy& policy, const Optimizer& optimizer)
      : data(sk::data::from_tensors(points.x, sk::Extents{1, {4}}, points.y)), trainer(model, nn::Mse{}, optimizer, policy) {}
  sk::History fit(sk::FitOptions options) {
    options.progress = false;
    options.seed = sk::Seed{11};
    options.threads = 1;
    return trainer.fit(data, options);
  }
  std::vector<double> parameters() const {
    return {std::as_const(model).parameters().begin(), std::as_const(model).parameters().end()};
  }
  auto& policy_state() { return trainer.train_step().policy_state(); }
};

/// Staleness<0> gives the bits of DataParallel over the workers, to each rank: uneven batches, accumulation, a schedule, any
/// number of servers, one fit after the other.
template <class Comm> void equals_data_parallel(Comm& world, const sk::FitOptions& options) {
  using sk::optim::Adam;
  const Adam adam{.lr = 0.01f};
  for (int servers = 1; servers < world.size() && servers <= 2; ++servers) {
    Training served{sk::parallel::ParameterServer{world, {.servers = servers}, Staleness<0>{}}, adam};
    RANK_CHECK(served.policy_state().ranks() == world.size() - servers);
    auto o = options;
    o.validate = served.data;
    (void)served.fit(options);
    const sk::History history = served.fit(o);
    const bool serves = world.rank() >= world.size() - servers;
    RANK_CHECK(serves == (history.epochs().size() == 0));

    Comm part = world.split(serves ? 1 : 0);
    std::vector<double> expected;
    if (!serves) {
      Training replicated{sk::parallel::DataParallel{part}, adam};
      (void)replicated.fit(options);
      const sk::History other = replicated.fit(o);
      expected = replicated.parameters();
      RANK_CHECK(history.back().validation.loss == other.back().validation.loss);
      RANK_CHECK(history.back().training.loss == Approx(other.back().training.loss).epsilon(1e-12));
      RANK_CHECK(served.trainer.evaluate(served.data).loss == replicated.trainer.evaluate(served.data).loss);
    } else {
      RANK_CHECK(std::isnan(served.trainer.evaluate(served.data).loss));  // empty
    }
    expected.resize(served.parameters().size());
    world.broadcast(sk::DeviceSpan<double>(expected.data(), expected.size()), 0);
    RANK_CHECK(served.parameters() == expected);
    RANK_CHECK(served.policy_state().report().updates > 0);
    RANK_CHECK(served.policy_state().report().max_staleness == 0);
    RANK_CHECK(served.policy_state().report().max_ahead == 0);
    // The optimizer's state is where the updates are made, and nowhere else.
    double bytes[2] = {static_cast<double>(served.trainer.train_step().optimizer().state_bytes()), serves ? 0.0 : 1.0};
    if (!serves) RANK_CHECK(bytes[0] == 0);
    world.all_reduce(sk::DeviceSpan<double>(bytes, 2), sk::Sum{});
    RANK_CHECK(bytes[0] <= 2 * sizeof(double) * static_cast<double>(served.parameters().size() + 32));
  }
}

/// Without a bound, and with one: every gradient is an update, the loss falls, and all ranks end with the same weights.
template <class Bound, class Comm> void trains(Comm& world, LateRate rate) {
  // Nobody is slow: the type is that of the next case.
  const sk::parallel::Slowed policy{sk::parallel::ParameterServer{world, {.servers = 1, .rate = rate}, Bound{}}, {.seconds = 0}};
  Training served{policy, sk::optim::Sgd{.lr = 0.05f}};
  const sk::History history = served.fit({.epochs = 8, .batch = 12, .validate = served.data});
  cases::same_on_all_ranks(world, std::as_const(served.model).parameters());
  const auto& report = served.policy_state().report();
  const int workers = world.size() - 1;
  const double steps = 8 * 9;
  RANK_CHECK(report.updates <= steps * workers);
  RANK_CHECK(report.updates >= steps * std::min(workers, 7));  // the last batch of 7 samples leaves some without
  RANK_CHECK(report.max_ahead <= static_cast<double>(Bound::bound));
  const double loss = served.trainer.evaluate(served.data).loss;
  if (world.rank() == workers) return;
  RANK_CHECK(history.back().training.loss < history.epochs()[0].training.loss);
  RANK_CHECK(history.back().validation.loss == Approx(loss).epsilon(1e-12));
}

/// One worker is slow: how far the others run ahead, in the first of ten trainings in which that is `expected` or more on all
/// ranks: on a busy machine the others may be as slow.
template <class Bound, class Comm> double ahead_of_a_slow_one(Comm& world, double expected) {
  double ahead = -1;
  for (int trial = 0, again = 1; trial < 10 && again > 0; ++trial) {
    Training served{sk::parallel::Slowed{sk::parallel::ParameterServer{world, Bound{}}, {.rank = 1, .seconds = 0.02}},
                    sk::optim::Sgd{.lr = 0.01f}};
    (void)served.fit({.epochs = 1, .batch = 10});
    ahead = served.policy_state().report().max_ahead;
    again = world.all_reduce(ahead < expected ? 1 : 0);
  }
  return ahead;
}

/// A training that is saved and goes on has the bits of one that never stopped; the state comes from the servers.
template <class Comm> void saves_and_loads(Comm& world, const std::string& path) {
  const sk::optim::Adam adam{.lr = 0.01f};
  const auto policy = sk::parallel::ParameterServer{world, {.servers = std::min(2, world.size() - 1)}, Staleness<0>{}};
  Training whole{policy, adam};
  (void)whole.fit({.epochs = 2, .batch = 10});
  Training first{policy, adam};
  (void)first.fit({.epochs = 1, .batch = 10});
  first.trainer.save(path);
  world.barrier();
  Training second{policy, adam};
  second.trainer.load(path);
  (void)second.fit({.epochs = 2, .batch = 10});
  RANK_CHECK(second.parameters() == whole.parameters());
  // Within a fit, while the servers serve.
  Training saved{policy, adam};
  auto o = sk::FitOptions{.epochs = 2, .batch = 10};
  auto saving = o;
  saving.callbacks = sk::train::Callbacks{[&](sk::train::EpochRecord& record) {
    if (record.epoch == 1) saved.trainer.save(path);
  }};
  (void)saved.fit(saving);
  world.barrier();
  Training third{policy, adam};
  third.trainer.load(path);
  (void)third.fit(o);
  RANK_CHECK(third.parameters() == whole.parameters());
  world.barrier();
  if (world.rank() == 0) std::remove(path.c_str());
}

struct BehindStep {
  std::int64_t step;
  std::function<void()> call;
  void on_step_end(const sk::train::StepRecord& record, sk::train::FitControl&) {
    if (record.step == step) call();
  }
};
/// Saved behind a step, when gradients have gone and no weights have come: a training that goes on has the same bits. By as many
/// ranks as give one worker, since without a bound several of them come in any order.
template <class Bound, class Comm> void saves_within_an_epoch(Comm& world, const std::string& path) {
  const sk::optim::Adam adam{.lr = 0.01f};
  const auto policy = sk::parallel::ParameterServer{world, {.servers = world.size() - 1}, Bound{}};
  const sk::FitOptions options{.epochs = 2, .batch = 10};
  Training whole{policy, adam}, saved{policy, adam}, more{policy, adam};
  (void)whole.fit(options);
  auto saving = options;
  saving.callbacks = sk::train::Callbacks{BehindStep{3, [&] { saved.trainer.save(path); }}};
  (void)saved.fit(saving);
  RANK_CHECK(saved.parameters() == whole.parameters());
  world.barrier();
  more.trainer.load(path);
  (void)more.fit(options);
  RANK_CHECK(more.parameters() == whole.parameters());
  world.barrier();
  if (world.rank() == 0) std::remove(path.c_str());
}

/// A training that began under another policy goes on: the servers count its steps, which Adam divides its moments by.
template <class Comm> void goes_on_from_another_policy(Comm& world, const std::string& path) {
  const sk::optim::Adam adam{.lr = 0.01f};
  Comm part = world.split(world.rank() == world.size() - 1 ? 1 : 0);
  const bool serves = world.rank() == world.size() - 1;
  std::vector<double> expected;
  if (!serves) {
    Training replicated{sk::parallel::DataParallel{part}, adam};
    (void)replicated.fit({.epochs = 1, .batch = 10});
    replicated.trainer.save(path);
    (void)replicated.fit({.epochs = 1, .batch = 10});
    expected = replicated.parameters();
  }
  world.barrier();
  Training served{sk::parallel::ParameterServer{world, Staleness<0>{}}, adam};
  served.trainer.load(path);
  (void)served.fit({.epochs = 2, .batch = 10});
  if (!serves) RANK_CHECK(served.parameters() == expected);
  world.barrier();
  if (world.rank() == 0) std::remove(path.c_str());
}

/// Gradients longer than what a pair of processes has room for, and a slow worker: those that train meet in a communicator of
/// their own (about signals, at the first update), which moves none of what a server waits for.
template <class Comm> void gradients_of_long_messages(Comm& world) {
  constexpr std::size_t inputs = 1200;
  std::vector<float> x(8 * inputs), y(8 * 2000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = sk::random_uniform(1, 0, i) - 0.5f;
  const auto data = sk::data::from_tensors(x, sk::Extents{1, {static_cast<int>(inputs)}}, y);
  sk::Model<sk::nn::Linear<2000>, sk::Shape<inputs>> model{sk::Seed{3}};  // 9.6 MB
  const sk::parallel::Slowed policy{sk::parallel::ParameterServer{world}, {.rank = 1, .seconds = 0.05}};
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{.lr = 1e-3f}, policy};
  (void)trainer.fit(data, {.epochs = 2, .batch = 4, .progress = false, .threads = 1});
  cases::same_on_all_ranks(world, std::as_const(model).parameters());
}

/// A loop by hand over a batch of two samples.
template <class TrainStep> void nine_steps(TrainStep& train_step) {
  using Scalar = typename TrainStep::Scalar;
  train_step.reserve({.capacity = 2, .threads = 1});
  const std::vector<Scalar> x(8, Scalar(0.1)), y(6, Scalar(0.2));
  sk::data::Batch<Scalar> batch;
  batch.x = x.data(), batch.targets = y.data();
  batch.pitch = 4, batch.target_pitch = 3;
  batch.count = batch.global_count = 2;
  for (int step = 0; step < 9; ++step) (void)train_step.step(batch);
}
}  // namespace parameter_server_cases
