// SPDX-License-Identifier: Apache-2.0
// What DataParallel must do on any communicator of the host: written once, run over threads and over MPI.
#pragma once
#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

#include <skein/data/from_tensors.hpp>
#include <skein/nn/batch_norm.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/adam.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/train/trainer.hpp>

#include "points.hpp"
#include "naive_layers.hpp"
#include "rank_check.hpp"

namespace data_parallel_cases {

namespace sk = skein;
namespace nn = skein::nn;
using sk::parallel::DataParallel, sk::parallel::DataParallelOptions, sk::parallel::Reduce;

using Net = nn::Sequential<naive::Linear<7>, naive::Tanh, naive::Linear<9>, naive::Tanh, naive::Linear<3>>;
using Model = sk::Model<Net, sk::Shape<4>, sk::Cpu, double>;

/// 103 samples: no batch size or number of ranks divides it.
struct Points : support::Points {
  std::vector<float> y = std::vector<float>(103 * 3);
  Points() : support::Points(103, {1, {4}}) {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::sin(3 * x[i % 100] + x[(i * 7) % 200]);
  }
  /// Of a rank whose samples are its own: 5, and 3 more for each rank before it.
  auto shard(int rank) const {
    const int n = 5 + 3 * rank;
    return sk::data::from_tensors(std::vector<float>(x.begin() + 20 * rank, x.begin() + 20 * rank + 4 * n), extents,
                                  std::vector<float>(y.begin(), y.begin() + 3 * n));
  }
};

struct Result {
  std::vector<double> losses, parameters;
  double validation = 0;
};

template <class Policy, class Optimizer = sk::optim::Sgd>
Result train(const Policy& policy, sk::FitOptions options, Optimizer optimizer = {.lr = 0.1f, .momentum = 0.9f}, int seed = 3) {
  Points points;
  auto data = sk::data::from_tensors(points.x, sk::Extents{1, {4}}, points.y);
  Model model{sk::Seed{static_cast<std::uint64_t>(seed)}};
  sk::Trainer trainer{model, nn::Mse{}, optimizer, policy};
  options.record_steps = true;
  options.progress = false;
  options.validate = data;
  options.seed = sk::Seed{11};
  const sk::History history = trainer.fit(data, options);
  Result r{history.losses(), {}, history.back().validation.loss};
  r.parameters.assign(model.parameters().begin(), model.parameters().end());
  return r;
}

inline void require_same(const Result& a, const Result& b, double tolerance) {
  RANK_CHECK(a.losses.size() == b.losses.size());
  for (std::size_t i = 0; i < a.losses.size(); ++i) RANK_CHECK(a.losses[i] == Approx(b.losses[i]).epsilon(tolerance));
  for (std::size_t i = 0; i < a.parameters.size(); ++i)
    RANK_CHECK(a.parameters[i] == Approx(b.parameters[i]).margin(tolerance).epsilon(0));
  RANK_CHECK(a.validation == Approx(b.validation).epsilon(tolerance));
}

/// Every rank has the same bits.
template <class Comm, class Span> void same_on_all_ranks(Comm& world, Span values) {
  std::vector<double> mine(values.begin(), values.end()), first = mine;
  world.broadcast(sk::DeviceSpan<double>(first.data(), first.size()), 0);
  RANK_CHECK(first == mine);
}

/// The same curve as the serial run: uneven batches, several executors, buckets of one layer and of all, polling or not.
template <class Comm> void agrees_with_serial(Comm& world) {
  const sk::FitOptions options{.epochs = 3, .batch = 10, .threads = 1};  // the last batch has 3 samples: ranks without any
  const Result serial = train(sk::parallel::SingleProcess{}, options);
  RANK_CHECK(serial.losses.size() == 33);
  RANK_CHECK(serial.losses.back() < serial.losses.front());
  for (long bucket : {1L, 1L << 20})
    for (bool poll : {true, false})
      require_same(train(DataParallel{world, {.bucket_bytes = bucket, .poll = poll}}, options), serial, 1e-12);
  sk::FitOptions depth = options;
  depth.compute.execution = sk::Execution::depth_first;
  require_same(train(DataParallel{world}, depth), serial, 1e-12);
  sk::FitOptions threads = options;
  threads.threads = 2;
  threads.compute.execution = sk::Execution::layer_wise;
  require_same(train(DataParallel{world, {.bucket_bytes = 1}}, threads), serial, 1e-12);
  require_same(train(DataParallel{world}, options, sk::optim::Adam{.lr = 0.01f}),
               train(sk::parallel::SingleProcess{}, options, sk::optim::Adam{.lr = 0.01f}), 1e-9);
  sk::FitOptions clipped = options;
  clipped.clip_norm = 0.05;
  const Result c = train(DataParallel{world}, clipped);
  require_same(c, train(sk::parallel::SingleProcess{}, clipped), 1e-12);
  RANK_CHECK(c.parameters != serial.parameters);
}

/// Accumulation divides by what was really served.
template <class Comm> void accumulates(Comm& world) {
  const Result once = train(sk::parallel::SingleProcess{}, {.epochs = 2, .batch = 20, .threads = 1});
  const Result twice = train(DataParallel{world}, {.epochs = 2, .batch = 10, .threads = 1, .step = {.accumulate = 2}});
  require_same(twice, once, 1e-12);
}

/// Reduce::Sum is the mean times the number of ranks: the step of a rate that many times as large.
template <class Comm> void sums(Comm& world) {
  const Result summed =
      train(DataParallel{world, {.reduce = Reduce::Sum}}, {.epochs = 2, .batch = 10, .threads = 1}, sk::optim::Sgd{.lr = 0.01f});
  const Result scaled = train(sk::parallel::SingleProcess{}, {.epochs = 2, .batch = 10, .threads = 1},
                              sk::optim::Sgd{.lr = 0.01f * static_cast<float>(world.size())});
  require_same(summed, scaled, 1e-6);  // the rate is a float
}

/// Weights are those of rank 0, whatever the others began with.
template <class Comm> void broadcasts(Comm& world) {
  const sk::FitOptions options{.epochs = 1, .batch = 10, .threads = 1};
  require_same(train(DataParallel{world}, options, sk::optim::Sgd{.lr = 0.1f}, 3 + world.rank()),
               train(sk::parallel::SingleProcess{}, options, sk::optim::Sgd{.lr = 0.1f}), 1e-12);
}

/// Each rank has a shard of its own size: every sample once, the loss is that of all samples.
template <class Comm> void local_shards(Comm& world) {
  const auto shard = Points().shard(world.rank());
  const double n = static_cast<double>(shard.size());
  Model model{sk::Seed{3}};
  sk::Trainer trainer{model, nn::Mse{}, sk::optim::Sgd{.lr = 1e-20f}, DataParallel{world}};
  const auto history = trainer.fit(
      shard, {.progress = false, .threads = 1, .loader = {.batch_per_rank = 4, .partition = sk::data::Partition::local}});
  Model same{sk::Seed{3}};
  sk::Trainer alone{same, nn::Mse{}, sk::optim::Sgd{.lr = 0.0f}};
  double sums[2] = {alone.evaluate(shard).loss * n, n};
  world.all_reduce(sk::DeviceSpan<double>(sums, 2), sk::Sum{});
  RANK_CHECK(history.back().training.loss == Approx(sums[0] / sums[1]).epsilon(1e-12));
}

/// Ranks whose models differ refuse to start, all with one message.
template <class Comm> void refuses_other_models(Comm& world) {
  if (world.size() == 1) return;
  std::string message;
  try {
    if (world.rank() == 0) {
      Model model{sk::Seed{1}};
      sk::Trainer trainer{model, nn::Mse{}, sk::optim::Sgd{}, DataParallel{world}};
    } else {
      sk::Model<nn::Sequential<naive::Linear<7>, naive::Tanh, naive::Linear<8>, naive::Tanh, naive::Linear<3>>, sk::Shape<4>,
                sk::Cpu, double>
          model{sk::Seed{1}};
      sk::Trainer trainer{model, nn::Mse{}, sk::optim::Sgd{}, DataParallel{world}};
    }
  } catch (const sk::CommError& e) { message = e.what(); }
  RANK_CHECK(message.find("models of DataParallel") != std::string::npos);
  for (const std::string& m : world.all_gather(message)) RANK_CHECK(m == message);
}

/// Running statistics are each rank's own while it trains, and one for all when they are read: for evaluation, at the end.
template <class Comm> void keeps_buffers_together(Comm& world) {
  Points points;
  auto data = points.set();
  sk::Model<nn::Sequential<naive::Linear<7>, nn::BatchNorm<>, naive::Tanh, naive::Linear<3>>, sk::Shape<4>, sk::Cpu, double>
      model{sk::Seed{3}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.1f}, DataParallel{world}};
  const auto history = trainer.fit(data, {.epochs = 2, .batch = 21, .validate = data, .progress = false, .threads = 1});
  same_on_all_ranks(world, model.buffers());
  same_on_all_ranks(world, std::as_const(model).parameters());
  RANK_CHECK(model.buffers()[0] != 0);
  RANK_CHECK(trainer.evaluate(data).loss == Approx(history.back().validation.loss).epsilon(1e-9));
}

/// A network deep enough that the first bucket can be complete before backward ends. Returns, for the last step, whether it was.
template <class Comm> bool first_bucket_overlaps(Comm& world, bool poll) {
  using Deep = nn::Sequential<naive::Linear<64>, naive::Tanh, naive::Linear<64>, naive::Tanh, naive::Linear<64>, naive::Tanh,
                              naive::Linear<64>, naive::Tanh, naive::Linear<3>>;
  Points points;
  auto data = sk::data::from_tensors(points.x, sk::Extents{1, {4}}, points.y);
  sk::Model<Deep, sk::Shape<4>> model{sk::Seed{3}};
  sk::Trainer trainer{model, nn::Mse{}, sk::optim::Sgd{.lr = 0.01f}, DataParallel{world, {.bucket_bytes = 1, .poll = poll}}};
  bool any = false;
  for (int i = 0; i < 100 && !any; ++i) {  // on busy cores a rank may be held up in each of a few
    trainer.fit(data, {.epochs = 1,
                       .batch = 96,
                       .progress = false,
                       .threads = 1,
                       .loader = {.last = sk::data::LastBatch::drop},
                       .compute = {.execution = sk::Execution::layer_wise}});
    const auto& policy_state = trainer.train_step().policy_state();
    RANK_CHECK(policy_state.trace().size() == 5);
    for (const auto& b : policy_state.trace()) RANK_CHECK(b.started >= 0);
    double mine[1] = {policy_state.trace()[0].done < policy_state.backward_done() ? 1.0 : 0.0};
    world.all_reduce(sk::DeviceSpan<double>(mine, 1), sk::Max{});
    any = mine[0] > 0;
  }
  return any;
}

}  // namespace data_parallel_cases
