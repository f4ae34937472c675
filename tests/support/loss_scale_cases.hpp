// SPDX-License-Identifier: Apache-2.0
// What training with a scaled loss must do on any communicator of the host: written once, run over threads and over MPI.
#pragma once
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include <skein/data/batch.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/tanh.hpp>
#include <skein/optim/adam.hpp>
#include <skein/parallel/average/model_average.hpp>
#include <skein/parallel/compose.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/train/train_step.hpp>

#include "larger.hpp"
#include "rank_check.hpp"

namespace loss_scale_cases {

namespace sk = skein;
namespace nn = skein::nn;

using Net = nn::Sequential<nn::Linear<16>, nn::Tanh, nn::Linear<8>>;
using In = sk::Shape<8>;
template <class P> using Model = sk::Model<Net, In, sk::Cpu, P>;

/// 12 samples; `large`: the target of that one is so far away that its gradient leaves fp16, whatever the scale.
struct Samples {
  std::vector<float> x = std::vector<float>(12 * 8), y = std::vector<float>(12 * 8);
  explicit Samples(long large = -1) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = sk::random_uniform(5, 0, i) - 0.5f;
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = sk::random_uniform(5, 1, i) - 0.5f;
    if (large >= 0) y[static_cast<std::size_t>(large) * 8] = 1e8f;
  }
  sk::data::Batch<float> share(int rank, int ranks) const {
    const long lo = 12L * rank / ranks, hi = 12L * (rank + 1) / ranks;
    sk::data::Batch<float> b;
    b.x = x.data() + lo * 8;
    b.pitch = 8;
    b.sample = In::extents;
    b.targets = y.data() + lo * 8;
    b.target_pitch = 8;
    b.target_length = 8;
    b.count = hi - lo;
    b.global_count = 12;
    b.first = lo;
    return b;
  }
};

/// All that a skipped step must leave alone.
template <class TrainStep> std::vector<float> everything(TrainStep& s) {
  const auto& model = s.model();
  std::vector<float> all(std::as_const(model).parameters().begin(), std::as_const(model).parameters().end());
  for (int k = 0; k < s.optimizer().arrays(); ++k)
    all.insert(all.end(), s.optimizer().array(k).begin(), s.optimizer().array(k).end());
  return all;
}

/// One rank's overflow skips the step on all, and halves the scale on all; good steps follow as if nothing had been.
template <class Policy> void skips(const Policy& policy, int rank, int ranks, int threads, sk::Execution execution) {
  Model<sk::precision::fp16> model{sk::Seed{3}};
  sk::train::TrainStep train_step{model, nn::Mse{}, sk::optim::Adam{.lr = 0.01f}, policy};
  train_step.reserve({.capacity = 12, .execution = execution, .threads = threads});
  RANK_CHECK(train_step.loss_scaler().options() == sk::optim::LossScaling::dynamic());
  train_step.set_loss_scaling({.initial = 1024, .interval = 3});
  const Samples good, bad(11);  // the last sample: of the last rank
  train_step.step(good.share(rank, ranks));
  RANK_CHECK(train_step.steps() == 1);
  RANK_CHECK(train_step.loss_scaler().scale() == 1024);
  const std::vector<float> before = everything(train_step);
  const auto sums = train_step.step(bad.share(rank, ranks));
  RANK_CHECK(sums.weight == 12 * 8);  // the loss of the step is known all the same
  RANK_CHECK(train_step.steps() == 1);
  RANK_CHECK(train_step.loss_scaler().scale() == 512);
  RANK_CHECK(train_step.loss_scaler().skipped() == 1);
  RANK_CHECK(everything(train_step) == before);
  for (int i = 0; i < 3; ++i) train_step.step(good.share(rank, ranks));
  RANK_CHECK(train_step.steps() == 4);
  RANK_CHECK(train_step.loss_scaler().scale() == 1024);  // after three good steps
  RANK_CHECK(everything(train_step) != before);

  // The same four steps without the one that was skipped, in one rank and float: Adam's step count did not move.
  Model<float> twin{sk::Seed{3}};
  sk::train::TrainStep alone{twin, nn::Mse{}, sk::optim::Adam{.lr = 0.01f}, sk::parallel::SingleProcess{}};
  alone.reserve({.capacity = 12, .threads = 1});
  for (int i = 0; i < 4; ++i) alone.step(good.share(0, 1));
  const std::vector<float> a = everything(train_step), b = everything(alone);
  double worst = 0;
  for (std::size_t i = 0; i < b.size() / 3; ++i) worst = support::larger(worst, static_cast<double>(a[i] - b[i]));
  RANK_CHECK(worst > 0);
  RANK_CHECK(worst < 2e-3);  // four steps of 0.01 each, by gradients of 11 bits
}

/// The norm of a clipped step is no overflow of the next.
template <class Policy> void clips(const Policy& policy, int rank, int ranks, int threads) {
  Model<sk::precision::fp16> model{sk::Seed{3}};
  sk::train::TrainStep train_step{model, nn::Mse{}, sk::optim::Adam{.lr = 0.01f}, policy};
  train_step.reserve({.capacity = 12, .threads = threads});
  train_step.set_loss_scaling({.initial = 1024});
  const Samples good;
  for (int i = 0; i < 4; ++i) train_step.step(good.share(rank, ranks), {.clip_norm = 0.01});
  RANK_CHECK(train_step.steps() == 4);
  RANK_CHECK(train_step.loss_scaler().skipped() == 0);
}

/// Gradients are those of a part of the ranks: an overflow there skips the step on all, or averages of models would not meet.
template <class Comm> void skips_beyond_a_part(Comm& world) {
  using namespace sk::parallel;
  Comm part = world.split(world.rank() / 2);
  Model<sk::precision::fp16> model{sk::Seed{3}};
  sk::train::TrainStep train_step{model, nn::Mse{}, sk::optim::Sgd{.lr = 0.01f},
                                  Compose{DataParallel{part}, ModelAverage{world, Period<2>{}}}};
  train_step.reserve({.capacity = 12, .threads = 1});
  train_step.set_loss_scaling({.initial = 1024});
  const Samples good, bad(11);
  for (const Samples* s : {&good, &bad, &good, &good}) train_step.step(s->share(world.rank(), world.size()));
  RANK_CHECK(train_step.steps() == 3);
  RANK_CHECK(train_step.loss_scaler().skipped() == 1);
  train_step.policy_state().finish();
}

template <class Comm> void all(Comm& world) {
  for (int threads : {1, 2}) clips(sk::parallel::DataParallel{world, {.bucket_bytes = 256}}, world.rank(), world.size(), threads);
  for (auto execution : {sk::Execution::layer_wise, sk::Execution::depth_first})
    for (int threads : {1, 2})
      skips(sk::parallel::DataParallel{world, {.bucket_bytes = 256}}, world.rank(), world.size(), threads, execution);
}

}  // namespace loss_scale_cases
