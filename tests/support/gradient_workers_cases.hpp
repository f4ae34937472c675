// SPDX-License-Identifier: Apache-2.0
// What GradientWorkers must do on any communicator of the host.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <skein/nn/batch_norm.hpp>
#include <skein/nn/conv2d.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/fused/conv_batch_norm.hpp>
#include <skein/nn/layer_norm.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/recurrent.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/reshape.hpp>
#include <skein/nn/rms_norm.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/nn/tanh.hpp>
#include <skein/optim/kfac/kfac.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/gradient_workers.hpp>
#include <skein/parallel/data/sync_batch_norm.hpp>
#include <skein/train/trainer.hpp>

#include "counted_splits.hpp"
#include "larger.hpp"
#include "rank_check.hpp"
#include "small_images.hpp"

namespace gradient_workers_cases {

namespace sk = skein;
namespace nn = skein::nn;
namespace optim = skein::optim;
namespace sp = skein::parallel;

using Convolutional =
    nn::Sequential<nn::Conv2d<5, sk::Kernel<3>, sk::Padding<1>>, nn::Relu, nn::Flatten, nn::Linear<6>, nn::Relu, nn::Linear<3>>;
/// A layer with two blocks, and blocks of scales and shifts.
using Normalized = nn::Sequential<nn::Reshape<6, 12>, nn::Gru<5>, nn::LayerNorm<>, nn::Flatten, nn::Linear<6>, nn::RmsNorm<>,
                                  nn::Relu, nn::Linear<3>>;
/// Statistics of all ranks, fused and not; a convolution of several groups has none of its own.
using Synchronized = nn::Sequential<nn::Conv2d<4, sk::Kernel<3>>, nn::BatchNorm<>, nn::Relu,
                                    nn::Conv2d<6, sk::Kernel<3>, sk::Groups<2>, sk::NoBias>, nn::BatchNorm<>, nn::Tanh,
                                    nn::BatchNorm<>, nn::Flatten, nn::Linear<3>>;
template <class Net> using ModelOf = sk::Model<Net, sk::Shape<6, 6, 2>, sk::Cpu, double>;
using Values = std::vector<double>;
constexpr long steps_each = 4;  // of an epoch

inline const auto& images() {
  static const auto data = support::small_images();
  return data;
}
inline optim::Kfac kfac(optim::KfacInverse how, int every = 2, int rank = 0) {
  return {.factor_every = every, .inverse_every = every, .inverse = how, .inverse_rank = rank, .unit_wise = true};
}
/// Each form of the inverses.
inline std::array<optim::Kfac, 3> each_form(int every = 2) {
  using enum optim::KfacInverse;
  return {kfac(eigen, every), kfac(cholesky, every), kfac(cholesky, every, 2)};
}
template <class Trainer> void fit(Trainer& trainer, int epochs, int threads) {
  trainer.fit(images(), {.epochs = epochs, .batch = 10, .seed = sk::Seed{5}, .progress = false, .threads = threads});
}
template <class Model, class Policy> auto trainer_of(Model& model, const optim::Kfac& how, const Policy& policy) {
  return sk::Trainer{model, nn::CrossEntropy{}, optim::chain(how, optim::Sgd{.lr = 0.1f, .momentum = 0.9}), policy};
}
template <class Model> Values parameters(const Model& model) { return {model.parameters().begin(), model.parameters().end()}; }
template <class Net, class Policy> Values trained(const optim::Kfac& how, const Policy& policy, int epochs, int threads) {
  ModelOf<Net> model{sk::Seed{3}};
  auto trainer = trainer_of(model, how, policy);
  fit(trainer, epochs, threads);
  return parameters(std::as_const(model));
}
inline void require_close(const Values& a, const Values& b, double margin) {
  RANK_CHECK(a.size() == b.size());
  double apart = 0;
  for (std::size_t i = 0; i < a.size(); ++i) apart = support::larger(apart, a[i] - b[i]);
  if (apart > margin) throw std::runtime_error("weights are " + std::to_string(1e9 * apart) + "e-9 apart");
}

/// The weights of one rank, whoever keeps the inverses.
template <class Share, class Net = Convolutional, class Comm, class... Options>
void agrees_with_one_rank(Comm& world, Options... options) {
  for (const optim::Kfac& how : each_form()) {
    const Values one = trained<Net>(how, sp::SingleProcess{}, 3, 1);
    const Values here =
        trained<Net>(how, sp::DataParallel{world, sp::GradientWorkers<Share>{}, options...}, 3, 1 + world.rank() % 2);
    require_close(here, one, 1e-9);
    for (const double v : {here.front(), here.back()}) {  // all ranks have the same bits
      const std::vector<double> all = world.all_gather(v);
      RANK_CHECK(std::count(all.begin(), all.end(), v) == static_cast<long>(all.size()));
    }
  }
}

/// What a rank gives to those of its column, and of its row, is what the plan says, for several intervals.
template <class Share, class Net = Convolutional, class Comm> void sends_what_is_planned(Comm& world) {
  const sk::plan::WorkerGrid grid = Share::grid(world.size());
  for (const int every : {1, 10, 100}) {
    const optim::Kfac how = kfac(optim::KfacInverse::cholesky, every, every == 10 ? 2 : 0);
    support::CountedSplits<Comm> counted(world);
    long steps = 0, inverses = 0, directions = 0;
    {
      const optim::KfacState<double> planned(ModelOf<Net>::program.layers(), how, {world.rank(), grid});
      inverses = planned.inverse_values();
      directions = planned.direction_values();
    }
    {
      ModelOf<Net> model{sk::Seed{3}};
      auto trainer = trainer_of(model, how, sp::DataParallel{counted, sp::GradientWorkers<Share>{}});
      fit(trainer, 3, 1);
      steps = static_cast<long>(trainer.train_step().steps());
    }
    const long updates = (steps + every - 1) / every, bytes = static_cast<long>(sizeof(double));
    RANK_CHECK(steps > 10 && counted.parts().size() == 2);
    RANK_CHECK(counted.parts()[0].payload == updates * inverses * bytes);
    RANK_CHECK(counted.parts()[1].payload == steps * directions * bytes);
    RANK_CHECK(counted.parts()[0].messages + counted.parts()[1].messages == 0);
  }
}

/// The ranks keep all inverses as often as there are gradient workers.
template <class Share, class Net = Convolutional, class Comm> void keeps_its_part(Comm& world) {
  const optim::Kfac how = kfac(optim::KfacInverse::cholesky);
  const sk::plan::WorkerGrid grid = Share::grid(world.size());
  const optim::KfacState<double> all(ModelOf<Net>::program.layers(), how);
  long kept = optim::KfacState<double>(ModelOf<Net>::program.layers(), how, {world.rank(), grid}).kept_inverses();
  kept = world.all_reduce(kept);
  RANK_CHECK(kept == grid.workers * all.kept_inverses());
}

/// A file made within an interval: the training goes on with the same weights with other gradient workers too.
template <class Net = Convolutional, class Comm> void goes_on(Comm& world, const std::string& path) {
  const optim::Kfac how = kfac(optim::KfacInverse::eigen, 3);  // 4 steps an epoch: the file is made one step behind an update
  const Values whole = trained<Net>(how, sp::SingleProcess{}, 3, 1);
  const auto begin = [&](const auto& policy) {
    ModelOf<Net> model{sk::Seed{3}};
    auto trainer = trainer_of(model, how, policy);
    fit(trainer, 1, 1);
    trainer.save(path);
    world.barrier();
    fit(trainer, 2, 1);
    return parameters(std::as_const(model));
  };
  const auto resume = [&](const auto& policy) {
    ModelOf<Net> model{sk::Seed{4}};
    auto trainer = trainer_of(model, how, policy);
    trainer.load(path);
    fit(trainer, 3, 1);
    world.barrier();
    return parameters(std::as_const(model));
  };
  const sp::DataParallel one{world, sp::GradientWorkers<sp::OneRank>{}};
  const Values through = begin(one);
  require_close(through, whole, 1e-9);
  require_close(resume(one), through, 0);
  require_close(resume(sp::DataParallel{world, sp::GradientWorkers<sp::Fraction<1, 2>>{}}), whole, 1e-9);
  require_close(resume(sp::DataParallel{world}), whole, 1e-9);
}

}  // namespace gradient_workers_cases
