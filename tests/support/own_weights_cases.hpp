// SPDX-License-Identifier: Apache-2.0
// Trainings whose ranks have weights of their own for a while: killed, or ended by a signal, at any step, and started again, they
// end with the bits of those that were not. The cases of threads and of MPI.
#pragma once
#include <csignal>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include <skein/data/from_tensors.hpp>
#include <skein/comm/compress/error_feedback.hpp>
#include <skein/comm/compress/power_sgd.hpp>
#include <skein/nn/batch_norm.hpp>
#include <skein/nn/dropout.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/tanh.hpp>
#include <skein/optim/adam.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/average/gossip.hpp>
#include <skein/parallel/average/model_average.hpp>
#include <skein/parallel/average/post_local_sgd.hpp>
#include <skein/parallel/data/compress.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/sync_every.hpp>
#include <skein/train/trainer.hpp>

#include "seed_of_start.hpp"

namespace support {
namespace own_weights {

namespace nn = skein::nn;
using Net = nn::Sequential<nn::Linear<13>, nn::BatchNorm<>, nn::Tanh, nn::Dropout<skein::Rate<1, 4>>, nn::Linear<3>>;
using Model = skein::Model<Net, skein::Shape<5>>;

/// Where a training is disturbed: at a step all ranks throw, as if they had been killed there, or the last one gets SIGUSR1.
struct Disturbed {
  std::string folder{};
  std::int64_t killed_at = 0, signal_at = 0, every = 3;
  std::int64_t* first_step = nullptr;  // of rank 0's updates
};
struct Killed : std::exception {
  const char* what() const noexcept override { return "killed here"; }
};
struct Disturbs {
  Disturbed at;
  bool gets_signal;
  void on_update(std::int64_t step) const {
    if (at.first_step && *at.first_step == 0) *at.first_step = step;
    if (step == at.killed_at) throw Killed{};
    if (gets_signal && step == at.signal_at) ::raise(SIGUSR1);
  }
};

/// 4 epochs of 6 steps, of batches that no number of ranks but 1 and 13 divides: rank 0's weights, buffers and losses.
template <class World, class MakePolicy, class Optimizer>
std::vector<double> fit(World& world, const MakePolicy& make, const Optimizer& optimizer, const Disturbed& disturbed) {
  std::vector<float> x(78 * 5);
  std::vector<std::int32_t> labels(78);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = skein::random_uniform(7, 0, i) - 0.5f;
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = x[5 * i] > 0 ? 1 : x[5 * i + 2] > 0 ? 2 : 0;
  const auto data = skein::data::from_tensors(x, skein::Extents{1, {5}}, labels);
  Model model{seed_of_start(disturbed.folder)};
  const auto policy = make(world);
  skein::Trainer trainer{model, nn::CrossEntropy{}, optimizer, policy};
  skein::FitOptions o{.epochs = 4, .batch = 13, .progress = false, .threads = 1, .interrupt = {.also = SIGUSR1}};
  if (!disturbed.folder.empty()) o.checkpoint = {.folder = disturbed.folder, .every = disturbed.every};
  Disturbs disturbs{disturbed, world.rank() == world.size() - 1};
  if (world.rank() != 0) disturbs.at.first_step = nullptr;
  o.callbacks.add(disturbs);
  std::vector<double> all;
  const skein::History history = trainer.fit(data, o);
  for (const auto& e : history.epochs()) all.push_back(e.training.loss);
  all.insert(all.end(), model.parameters().begin(), model.parameters().end());
  all.insert(all.end(), model.buffers().begin(), model.buffers().end());
  return all;
}

/// visit(name, policy of a world, optimizer) for some kinds, and for the others.
template <class Visit> void some_kinds(const Visit& visit) {
  using namespace skein::parallel;
  const skein::optim::Adam adam{.lr = 0.02f};
  const skein::optim::Sgd momentum{.lr = 0.1f, .momentum = 0.9};
  visit(
      "average, momentum",
      [](auto& w) {
        return ModelAverage{w, Period<4>{}};
      },
      momentum);
  visit(
      "streamed average",
      [](auto& w) {
        return ModelAverage{w, {.fragments = 3, .delay = 3, .keep = 0.5}, Period<7>{}};
      },
      adam);
  visit(
      "both",
      [](auto& w) {
        return Compose{DataParallel{w, SyncEvery<3>{}}, ModelAverage{w, Period<7>{}}};
      },
      adam);
  visit(
      "gossip", [](auto& w) { return Gossip{w}; }, adam);
}
template <class Visit> void other_kinds(const Visit& visit) {
  using namespace skein::parallel;
  const skein::optim::Adam adam{.lr = 0.02f};
  const skein::optim::Sgd momentum{.lr = 0.1f, .momentum = 0.9};
  using Few = skein::comm::ErrorFeedback<skein::comm::PowerSgd<2>>;
  visit(
      "average, Adam",
      [](auto& w) {
        return ModelAverage{w, Period<7>{}};
      },
      adam);
  visit(
      "average of states",
      [](auto& w) {
        return ModelAverage{w, {.weighted = false, .state = true}, Period<5>{}};
      },
      adam);
  visit(
      "average of epochs",
      [](auto& w) {
        return ModelAverage{w, Period<2, Every::epoch>{}};
      },
      adam);
  visit(
      "late average of epochs",
      [](auto& w) {
        return ModelAverage{w, {.delay = 4}, Period<1, Every::epoch>{}};
      },
      momentum);
  visit(
      "outer optimizer",
      [](auto& w) {
        return ModelAverage{w, {.fragments = 2}, Period<6>{}, DiLoCo{}};
      },
      momentum);
  visit(
      "gradients now and then",
      [](auto& w) {
        return DataParallel{w, SyncEvery<5>{}};
      },
      adam);
  visit(
      "gradients in some epochs",
      [](auto& w) {
        return DataParallel{w, SyncEveryEpochs<2>{}};
      },
      momentum);
  visit(
      "compressed now and then",
      [](auto& w) {
        return DataParallel{w, Compress<Few>{}, SyncEvery<3>{}};
      },
      adam);
  visit(
      "after a first phase",
      [](auto& w) {
        return PostLocalSgd{w, SyncFirst<5>{}, Period<6>{}};
      },
      momentum);
  visit(
      "gradients", [](auto& w) { return DataParallel{w}; }, adam);
}

}  // namespace own_weights
}  // namespace support
