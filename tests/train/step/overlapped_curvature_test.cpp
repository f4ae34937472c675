// SPDX-License-Identifier: Apache-2.0
// Factors that leave during backward: the bits of one message after it, in one order on all ranks, as many bytes as are planned;
// the trace shows them leaving before backward ends.
#include <skein/train/step/overlapped_curvature.hpp>

#include <algorithm>
#include <vector>

#include <catch2/catch.hpp>
#include <skein/comm/counted.hpp>
#include <skein/comm/sim/delayed.hpp>
#include <skein/comm/thread/spawn.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/nn/batch_norm.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/layer_norm.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/recurrent.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/nn/tanh.hpp>
#include <skein/optim/kfac/kfac.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/gradient_workers.hpp>
#include <skein/parallel/data/sharded.hpp>
#include <skein/parallel/data/sync_batch_norm.hpp>
#include <skein/train/fitted_training_of.hpp>
#include <skein/train/trainer.hpp>

#include "../../support/rank_check.hpp"

namespace sk = skein;
namespace nn = skein::nn;
namespace optim = skein::optim;
namespace sp = skein::parallel;

namespace {
using Values = std::vector<double>;
/// Factors of several buckets, of layers with one block, two, and unit-wise ones. Normalization couples the batch, or does not.
template <class Normalization> using Net =
    nn::Sequential<nn::Gru<12>, nn::LayerNorm<>, nn::Flatten, nn::Linear<200>, Normalization, nn::Tanh, nn::Linear<150>, nn::Tanh,
                   nn::Linear<200>, nn::Tanh, nn::Linear<3>>;
template <class Normalization> using ModelOf = sk::Model<Net<Normalization>, sk::Shape<4, 6>, sk::Cpu, double>;
using Model = ModelOf<nn::BatchNorm<>>;

const auto& samples() {
  static const auto data = [] {
    Values x(24 * 50);
    std::vector<std::int32_t> labels(50);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(sk::random_uniform(3, 0, i)) - 0.5;
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 3);
    return sk::data::from_tensors(x, sk::Extents{2, {4, 6}}, labels);
  }();
  return data;
}
/// Class weights: what ranks multiply their output gradients by is known after the exchange.
nn::CrossEntropy weighted() { return {.class_weights = {0.3f, 1.1f, 2.7f}}; }
optim::Kfac kfac(bool overlap, int factor_every = 2) {
  return {.factor_every = factor_every,
          .inverse_every = 3,
          .inverse = optim::KfacInverse::cholesky,
          .unit_wise = true,
          .overlap = overlap};
}
/// look(trainer) sees the trainer after three epochs.
template <class Model, class Comm, class Look, class... Options>
Values trained(Comm& world, const optim::Kfac& how, const sk::ExecutorOptions& run, const Look& look, Options... options) {
  Model model{sk::Seed{3}};
  sk::Trainer trainer{model, weighted(), optim::chain(how, optim::Sgd{.lr = 0.1f, .momentum = 0.9}),
                      sp::DataParallel{world, options...}};
  trainer.fit(samples(), {.epochs = 3,
                          .batch = 16,
                          .seed = sk::Seed{5},
                          .progress = false,
                          .threads = run.threads,
                          .compute = {.execution = run.execution}});
  look(trainer);
  return {std::as_const(model).parameters().begin(), std::as_const(model).parameters().end()};
}
const auto nothing = [](auto&) {};
}  // namespace

TEST_CASE("Factors that leave during backward give the bits of one message after it", "[train]") {
  const int ranks = GENERATE(2, 3);
  sk::spawn(ranks, [](sk::ThreadComm& world) {
    const auto check = [&](auto... options) {
      for (const int threads : {1, 1 + world.rank() % 2, 2}) {
        const sk::ExecutorOptions run{.threads = threads};
        const Values one = trained<Model>(world, kfac(false), run, nothing, options...);
        RANK_CHECK(trained<Model>(world, kfac(true), run, nothing, options...) == one);
      }
    };
    check(sp::SyncBatchNorm{});
    check(sp::SyncBatchNorm{}, sp::GradientWorkers<sp::OneRank>{});
    check(sp::SyncBatchNorm{}, sp::Sharded<2>{});
  });
}

TEST_CASE("Ranks that hear of their layers one by one and all at once begin their collectives in one order", "[train]") {
  using Apart = ModelOf<nn::LayerNorm<>>;
  sk::spawn(3, [](sk::ThreadComm& world) {
    const sk::ExecutorOptions run{.execution = world.rank() == 1 ? sk::Execution::depth_first : sk::Execution::layer_wise,
                                  .threads = 1};
    const Values one = trained<Apart>(world, kfac(false), run, nothing);
    RANK_CHECK(trained<Apart>(world, kfac(true), run, nothing) == one);
  });
}

TEST_CASE("Buckets of factors leave before backward ends, and are as many bytes as are planned", "[train]") {
  sk::spawn(2, [](sk::ThreadComm& world) {
    const Values x(24 * 16, 0.5 + world.rank());
    const std::vector<std::int32_t> labels(16, 1);
    const sk::BatchView<double> batch{.x = x.data(), .pitch = 24, .labels = labels.data(), .count = 16, .global_count = 32};
    long payload[2] = {}, planned = 0;
    for (const int every : {1, 4}) {
      sk::Counted<sk::ThreadComm> counted(world);
      Model model{sk::Seed{3}};
      sk::train::TrainStep step{model, weighted(), optim::chain(kfac(true, every), optim::Sgd{.lr = 0.01f}),
                                sp::DataParallel{counted, sp::SyncBatchNorm{}}};
      step.reserve({.capacity = 16, .threads = 1});
      step.policy_state().start();
      const long before = counted.counts().payload;
      for (int i = 0; i < 8; ++i) {
        step.step(batch);
        if (i % every != 0) continue;
        const auto trace = step.curvature().trace();
        long values = 0;
        for (const auto& bucket : trace) {
          values += bucket.range.end - bucket.range.begin;
          RANK_CHECK(bucket.started >= 0 && bucket.done >= bucket.started);
        }
        planned = step.curvature().packed_values();
        RANK_CHECK(trace.size() > 2 && values == planned && trace[0].range.end == planned);
        RANK_CHECK(trace[1].started < step.policy_state().backward_done());
        RANK_CHECK(step.curvature().exposed_seconds() >= 0);
      }
      payload[every == 1 ? 0 : 1] = counted.counts().payload - before;
    }
    RANK_CHECK(payload[0] - payload[1] == (8 - 2) * planned * static_cast<long>(sizeof(double)));
  });
}

TEST_CASE("A training with Kfac sends the bytes that are planned, at intervals of 1, 10 and 100 steps", "[train]") {
  using Small = nn::Sequential<nn::Flatten, nn::Linear<8>, nn::Tanh, nn::Linear<3>>;
  using SmallModel = sk::Model<Small, sk::Shape<4, 6>, sk::Cpu, double>;
  constexpr long steps = 200;
  // Factors of 25 and 8, and of 9 and 3 rows: the triangles with the number of samples, and the inverses.
  constexpr long triangles = 25 * 26 / 2 + 8 * 9 / 2 + 9 * 10 / 2 + 3 * 4 / 2 + 1, squares = 25 * 25 + 8 * 8 + 9 * 9 + 3 * 3;
  const int ranks = GENERATE(2, 3, 4);
  sk::spawn(ranks, [&](sk::ThreadComm& world) {
    const Values x(24 * 4, 0.5 + world.rank());
    const std::vector<std::int32_t> labels(4, 1);
    const sk::BatchView<double> batch{.x = x.data(), .pitch = 24, .labels = labels.data(), .count = 4, .global_count = 4 * ranks};
    // what this rank gives in all steps, in bytes; look(step) sees the step behind them
    const auto sent = [&](const auto& optimizer, const auto& look) {
      sk::Counted<sk::ThreadComm> counted(world);
      SmallModel model{sk::Seed{3}};
      sk::train::TrainStep step{model, weighted(), optimizer, sp::DataParallel{counted}};
      step.reserve({.capacity = 4, .threads = 1});
      step.policy_state().start();
      const long before = counted.counts().payload;
      for (long i = 0; i < steps; ++i) step.step(batch);
      look(step);
      return counted.counts().payload - before;
    };
    const optim::Sgd sgd{.lr = 0.01f};
    const long gradients = sent(sgd, nothing);
    RANK_CHECK(gradients > 0);
    for (const bool overlap : {false, true})
      for (const int factors : {1, 10, 100})
        for (const int inverses : {10, 100}) {
          optim::Kfac how = kfac(overlap, factors);
          how.inverse_every = inverses;
          long own = 0;
          const long all = sent(optim::chain(how, sgd), [&](auto& step) {
            RANK_CHECK(step.curvature().packed_values() == triangles);
            own = step.curvature().inverse_values();
          });
          const long planned = steps / factors * triangles + steps / inverses * own;
          RANK_CHECK(all - gradients == planned * static_cast<long>(sizeof(double)));
          double made = static_cast<double>(own);
          world.all_reduce(std::span(&made, 1), sk::Sum{});
          RANK_CHECK(made == static_cast<double>(squares));
        }
  });
}

TEST_CASE("What a training with Kfac waits for factors, inverses and gathered gradients is exposed communication", "[train]") {
  using Small = sk::Model<nn::Sequential<nn::Flatten, nn::Linear<3>>, sk::Shape<4, 6>, sk::Cpu, double>;
  constexpr double each = 0.02;  // seconds of a collective
  sk::SlowNetwork network({}, each);
  sk::spawn(2, [&](sk::ThreadComm& threads) {
    sk::Delayed world{threads, network};
    const Values x(24 * 4, 0.5 + threads.rank());
    const std::vector<std::int32_t> labels(4, 1);
    const sk::BatchView<double> batch{.x = x.data(), .pitch = 24, .labels = labels.data(), .count = 4, .global_count = 8};
    const auto waited = [&](bool overlap, auto... options) {
      Small model{sk::Seed{3}};
      sk::train::TrainStep step{model, weighted(), optim::chain(kfac(overlap, 1), optim::Sgd{.lr = 0.01f}),
                                sp::DataParallel{world, options...}};
      step.reserve({.capacity = 4, .threads = 2});
      for (int i = 0; i < 4; ++i) step.step(batch);
      sk::train::WeightsCopy<decltype(step)> kept;
      sk::train::detail::FittedTrainingOf<decltype(step)> training{step, kept};
      return training.exposed_seconds() - step.policy_state().exposed_seconds();
    };
    RANK_CHECK(waited(false) >= (4 + 2) * each);  // factors in each step, inverses in the first and the fourth
    RANK_CHECK(waited(true) >= 2 * each);         // factors may have left with the gradients
    RANK_CHECK(waited(false, sp::Sharded<2>{}) >= (4 + 2 + 4) * each);  // gradients of the other parts besides
  });
}
