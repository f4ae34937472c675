// SPDX-License-Identifier: Apache-2.0
// A residual network on CIFAR-10 over ranks, as courses on supercomputers train it: momentum SGD, LARS, LAMB or K-FAC, a rate
// that grows with the global batch, warm-up, steps down, crops and flips, batch normalization over the ranks. With --optimizer
// all they run one after another from the same weights, with tables and a plot of the accuracy by time; one that diverges says
// so, and the others go on. With --record FILE the speed-up against the run of one rank in that file (with a run's accuracies
// behind its seconds), which --svg draws too: at an equal batch of a rank (--batch: weak scaling), or of all ranks together
// (--global-batch: strong scaling, as the labs of courses have it). With --checkpoint FOLDER a training that was interrupted goes
// on when it is started again. Pauloski et al., SC 2020, arXiv:2007.00784 (K-FAC: damping 0.003, factor decay 0.95, kl-clip
// 0.001, factors every step, inverses every 10); He et al., CVPR 2016 (the network).
//     for n in 1 2 4; do mpirun -n $n 17_cifar_resnet --optimizer kfac --record times.csv; done
//     for n in 1 2 4; do mpirun -n $n 17_cifar_resnet --global-batch 128 --record times.csv; done
//     17_cifar_resnet --optimizer all --epochs 20 --target 0.6 --svg by_optimizer --json figures.json
// The K-FAC that is there sooner than tuned SGD (bench/README.md, kfac):
//     17_cifar_resnet --optimizer kfac --damping 2 --lr 1 --factor-every 40 --inverse-every 40 --factor-decay 0.8
//                     --factor-bias-correction --kl-clip 0 --inverse cholesky
// The gate compiles ResNet-20 alone; 32 and 56 are there where tests are not built (-DSKEIN_TESTS=OFF).
// ctest: --samples 192 --epochs 1 --batch 32 --optimizer all --inverse cholesky --target 0.01 --svg resnet --record resnet.csv
// ctest expects: speed-up 1.00.*(10,000 . 2,000 images|drawn digits).*the first 192 images, 1 ranks.*resnet_speed_up.svg
// ctest on 2 ranks: --samples 192 --epochs 1 --batch 32 --optimizer kfac --record resnet.csv
// ctest on 4 ranks: --samples 96 --epochs 1 --batch 8 --threads 1 --record resnet.csv --svg resnet
// ctest expects: best accuracy.*speed-up
// ctest on 2 ranks: --samples 96 --epochs 1 --global-batch 16 --optimizer kfac --kl-clip 0 --inverse cholesky --inverse-rank 9
// ctest expects: 8 samples a rank and batch.*kfac +[0-9]
// ctest: --samples 96 --epochs 1 --batch 16 --warmup 0 --decay 100 --lr 1000 --optimizer all --inverse cholesky --svg lost
// ctest expects: lamb +diverged.*kfac +0.*drawn: lost.svg
// ctest long: --samples 32 --epochs 1 --batch 16 --depth 32
// ctest long: --samples 32 --epochs 1 --batch 16 --depth 56
// ctest expects: ResNet-(32|56) on.*best accuracy
// ctest: --depth 44
// ctest expects: --depth 44: it is 20, 32 or 56
// ctest on 2 ranks: --samples 96 --global-batch 13
// ctest expects: --global-batch 13 has no equal shares for 2 ranks: give a multiple of 2
// ctest: --decay 10,20,30,40,50,60,70,80,90
// ctest expects: --decay has 9 places: give at most 8
// ctest: --lr 0.1,1
// ctest expects: --lr has 2 rates: give one, or with --optimizer all four, of sgd, lars, lamb and kfac
// ctest: --json nowhere/figures.json
// ctest expects: nowhere/figures.json: --json cannot be written there
// ctest: --samples 96 --batch 1000000
// ctest expects: --batch 1000000 is more than the 96 samples of each rank
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <skein/mpi.hpp>
#include <skein/optim/kfac/kfac.hpp>
#include <skein/parallel.hpp>
#include <skein/skein.hpp>
#include <skein/train/commit_folder.hpp>

#include "support/cifar_or_digits.hpp"
#include "support/cifar_resnet_flags.hpp"
#include "support/flag_checks.hpp"
#include "support/output_files.hpp"
#include "support/recorded_runs.hpp"
#include "support/results.hpp"
#include "support/table.hpp"
namespace sk = skein;
namespace ex = experiments;
namespace optim = sk::optim;

namespace {

using Options = ex::CifarResNetFlags;

/// One training, and what the table says of it.
struct Outcome {
  std::string optimizer;
  sk::History history;       // empty: it diverged
  std::string went_on_from;  // the folder of commits that it was begun with; empty: it was begun here

  bool diverged() const { return history.empty(); }
  double best() const { return history.best(sk::train::highest("accuracy")).validation.accuracy; }
  /// On the test set, after each epoch.
  std::vector<double> accuracies() const {
    std::vector<double> all;
    for (const auto& e : history) all.push_back(e.validation.accuracy);
    return all;
  }
  /// Seconds of training and validation until the accuracy was there, or not a number.
  double seconds_to(double target) const {
    double seconds = 0;
    for (const auto& e : history) {
      seconds += e.seconds;
      if (e.validation.accuracy >= target) return seconds;
    }
    return NAN;
  }
};

template <class Network, class Optimizer> Outcome train(sk::MpiComm& world, const Options& o, const std::string& name,
                                                        const sk::data::SourcedTrainTest& set, const Optimizer& optimizer) {
  using namespace sk::data;
  const sk::Seed seed{static_cast<std::uint64_t>(o.seed)};
  const auto shown = map(set.test, cifar10_channels);
  sk::Model<Network, sk::Shape<32, 32, 3>> model{seed};
  sk::Trainer trainer{model, sk::nn::CrossEntropy{.label_smoothing = o.label_smoothing}, optimizer,
                      sk::parallel::DataParallel{world, sk::parallel::SyncBatchNorm{}}};
  // Milestones in percent of the fit; warm-up in epochs.
  const auto at = [&](std::size_t i) { return optim::share(i < o.decay.size() ? o.decay[i] / 100.0 : 2.0); };
  const auto steps = optim::multi_step({at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)});
  sk::FitOptions fit{.epochs = o.epochs,
                     .validate = shown,
                     .seed = seed,
                     .threads = o.threads,
                     .loader = {.batch_per_rank = o.batch},
                     .step = {.accumulate = o.accumulate}};
  const std::string folder = o.checkpoint.empty() ? "" : o.checkpoint + "/" + name;
  const bool begun = !folder.empty() && !sk::train::CommitFolder(folder).steps().empty();  // not where it has a lock alone
  if (!folder.empty()) fit.checkpoint = {.folder = folder}, trainer.keep(shown.normalization());
  if (ex::warms_up(o.warmup, o.epochs)) fit.schedule = optim::warmup(optim::epochs(o.warmup)) * steps;
  else fit.schedule = steps;
  if (world.rank() == 0) std::printf("-- %s\n", name.c_str());
  Outcome one{name, {}, begun ? folder : ""};
  try {
    if (o.augment) one.history = trainer.fit(map(map(set.train, CropAndFlip{.seed = seed}), cifar10_channels), fit);
    else one.history = trainer.fit(map(set.train, cifar10_channels), fit);
  } catch (const sk::NotFiniteError& e) {  // on all ranks
    if (world.rank() == 0) std::printf("%s diverged: %s\n", name.c_str(), e.what());
  }
  return one;
}

template <class Network>
std::vector<Outcome> train_each(sk::MpiComm& world, const Options& o, const sk::data::SourcedTrainTest& set) {
  std::vector<Outcome> outcomes;
  const double scale = static_cast<double>(o.batch) * world.size() * o.accumulate / 128;
  const auto momentum_sgd = [&](const char* name, double usual, double decay) {
    return optim::Sgd{.lr = static_cast<float>(ex::rate_of(o, name, usual) * scale),
                      .momentum = static_cast<float>(o.momentum),
                      .weight_decay = static_cast<float>(decay)};
  };
  const auto add = [&](const std::string& name, const auto& optimizer) {
    if (o.optimizer == name || o.optimizer == "all") outcomes.push_back(train<Network>(world, o, name, set, optimizer));
  };
  const float decay = static_cast<float>(o.weight_decay);
  add("sgd", momentum_sgd("sgd", 0.1, o.weight_decay));
  add("lars", optim::chain(optim::Lars{.trust = 1e-2f, .weight_decay = decay}, momentum_sgd("lars", 1, 0)));
  auto lamb = momentum_sgd("lamb", 5e-3, 0);
  lamb.momentum = 0;
  add("lamb", optim::chain(optim::Lamb{.weight_decay = decay}, lamb));
  add("kfac", optim::chain(optim::Kfac{.damping = o.damping,
                                       .factor_every = o.factor_every,
                                       .inverse_every = o.inverse_every,
                                       .factor_decay = o.factor_decay,
                                       .kl_clip = o.kl_clip,
                                       .inverse = o.inverse == "eigen" ? optim::KfacInverse::eigen : optim::KfacInverse::cholesky,
                                       .inverse_rank = o.inverse_rank,
                                       .factor_bias_correction = o.factor_bias_correction},
                           momentum_sgd("kfac", 0.1, o.weight_decay)));
  return outcomes;
}

#if SKEIN_ALL_DEPTHS
constexpr bool all_depths = true;
#else
constexpr bool all_depths = false;
#endif
std::vector<Outcome> train_each(sk::MpiComm& world, const Options& o, const sk::data::SourcedTrainTest& set) {
#if SKEIN_ALL_DEPTHS
  if (o.depth == 32) return train_each<sk::models::CifarResNet<32>>(world, o, set);
  if (o.depth == 56) return train_each<sk::models::CifarResNet<56>>(world, o, set);
#endif
  return train_each<sk::models::CifarResNet<20>>(world, o, set);  // others have been refused
}

/// Adds the run to the file and the curve of those recorded there to the plot; the speed-up, as the table has it.
std::string recorded(const Options& o, const sk::data::SourcedTrainTest& set, const Outcome& one, int ranks,
                     sk::draw::Plot& plot) {
  if (!one.went_on_from.empty()) {
    std::printf(
        "%s: it was begun in %s, so that its time, which is not recorded, and its accuracy may be of other flags and ranks\n",
        one.optimizer.c_str(), one.went_on_from.c_str());
    return "-";
  }
  if (o.record.empty()) return "-";
  const auto name = [&](const Options& at) {
    return ex::recorded_settings(at, set.source, static_cast<long>(set.train.size()), one.optimizer);
  };
  const ex::RunSettings settings = ex::settings_by_ranks(o, name);
  std::printf("%s: %s\n", one.optimizer.c_str(),
              ex::record_run(o.record, settings, ranks, one.history.seconds(), one.accuracies()).c_str());
  if (const std::string other = ex::other_comparison(o.record, o, ranks, name); !other.empty())
    std::printf("%s: %s\n", one.optimizer.c_str(), other.c_str());
  const double of_one = ex::seconds_of_one(o.record, settings);
  if (!(of_one > 0)) return "no run of one rank";
  auto& curve = plot.series.emplace_back();
  curve.name = one.optimizer;
  for (const ex::RecordedRun& run : ex::recorded_runs(o.record, settings))
    curve.x.push_back(run.ranks), curve.y.push_back(of_one / run.seconds);
  return ex::cell(of_one / one.history.seconds());
}

int report(const sk::MpiComm& world, const Options& o, const sk::data::SourcedTrainTest& set,
           const std::vector<Outcome>& outcomes) {
  const std::string& source = set.source;
  const std::string title = ex::job(o, source) + ", " + std::to_string(world.size()) + " ranks";
  std::printf("ResNet-%d on %s: %d ranks, %d epochs, %ld samples a rank and batch, %d batches a step\n", o.depth, source.c_str(),
              world.size(), o.epochs, o.batch, o.accumulate);
  ex::Results results("cifar_resnet", {.json = o.json});
  ex::Table table{{"optimizer", "best accuracy", "last loss", "seconds", "images a second", "seconds to the target", "speed-up"}};
  sk::draw::Plot plot{.title = title, .x_label = "seconds", .y_label = "test accuracy"};
  sk::draw::Plot speed_up{.title = "Speed-up, " + ex::job(o, source), .x_label = "ranks", .y_label = "times one rank"};
  for (const Outcome& one : outcomes) {
    ex::Line line{.metric = title + ", " + one.optimizer + ", best test accuracy", .unit = ""};
    if (one.diverged()) {
      table.row({one.optimizer, "diverged", "-", "-", "-", "-", "-"});
      line.add("diverged"), results.add(line);
      continue;
    }
    const double seconds = one.history.seconds(), images = one.history.back().samples_per_second;
    table.row({one.optimizer, ex::cell(one.best()), ex::cell(one.history.back().training.loss), ex::cell(seconds),
               ex::cell(images), ex::cell(one.seconds_to(o.target)), recorded(o, set, one, world.size(), speed_up)});
    auto& curve = plot.series.emplace_back();
    curve.name = one.optimizer;
    double at = 0;
    for (const auto& e : one.history) curve.x.push_back(at += e.seconds), curve.y.push_back(e.validation.accuracy);
    line.ours = one.best();
    line.add("seconds to " + ex::cell(o.target) + ": " + ex::cell(one.seconds_to(o.target)));
    results.add(line);
  }
  table.print();
  const int status = results.finish();
  const auto draw = [&](const sk::draw::Plot& p, const std::string& file) {
    p.write(file), std::printf("drawn: %s\n", file.c_str());
  };
  if (!o.svg.empty()) draw(plot, o.svg + ".svg");
  if (!o.svg.empty() && !speed_up.series.empty()) draw(speed_up, o.svg + "_speed_up.svg");
  return status;
}

/// What can be said before the first training. Throws FlagError.
void check(const Options& o, int ranks, long samples) {
  const long own = samples / ranks;
  const std::string more = ex::more_samples(o.samples > 0);
  if (o.global_batch > 0) ex::check_at_most("global-batch", o.global_batch, own * ranks, "samples of an epoch", more);
  else ex::check_at_most("batch", o.batch, own, "samples of each rank", more);
  ex::check_at_most("accumulate", o.accumulate, (own + o.batch - 1) / o.batch, "batches of each rank", more);
}

}  // namespace

int main(int argc, char** argv) {
  return sk::run<Options>(argc, argv, [&](Options o) {
    ex::check_flags(o, all_depths);
    sk::MpiComm world{argc, argv};
    o.batch = ex::batch_of_rank(o.batch, o.global_batch, world.size());
    if (world.rank() == 0) ex::check_outputs({.json = o.json, .record = o.record, .svg = o.svg});
    const auto set = ex::cifar_or_digits(o.data, o.samples);
    check(o, world.size(), set.train.size());
    if (world.rank() == 0) std::printf("%s", ex::left_out_warmup(o.warmup, o.epochs).c_str());
    const std::vector<Outcome> outcomes = train_each(world, o, set);
    return world.rank() == 0 ? report(world, o, set, outcomes) : 0;
  });
}
