// SPDX-License-Identifier: Apache-2.0
// MNIST over ranks, as two texts did it: a logistic regression with Adam (one Linear(784, 10)), and LeNet with SGD (rate 1e-3,
// momentum 0.85) whose gradients are summed, not averaged, over R equal shards, so that the step grows with R. Each rank sees its
// shard alone and says a line; rank 0 prints the time of the epochs, and with --record FILE the speed-up and efficiency against
// the run of one rank in that file.
//     for n in 1 2 4; do mpirun -n $n 11_mnist_over_mpi --network lenet --record times.csv; done
// With --processes 1,2,4 one start of 4 ranks measures all three, in turns (1 2 4 4 2 1) in which the ranks without a part sleep:
// the ratios are of neighbours in time then.
//     mpirun --oversubscribe --bind-to none -n 4 11_mnist_over_mpi --network lenet --processes 1,2,4 --svg speed_up
// ctest: --threads-as-ranks 1 --samples 6000 --record times.csv
// ctest: --threads-as-ranks 2 --samples 6000 --network lenet
// ctest on 2 ranks: --samples 6000
// ctest on 2 ranks: --samples 6000 --network lenet
// ctest: --threads-as-ranks 2 --samples 3000 --processes 1,2 --rounds 1 --svg speed_up
// ctest expects: all ranks have the same weights
// ctest: --threads-as-ranks 3 --samples 3000 --processes 3,2 --rounds 1
// ctest expects: first 3000 images: .*first 3000 images, 2 threads: [^m]*.the ratio is the efficiency.*efficiency.[3] +[0-9]
// ctest: --threads-as-ranks 2 --samples 200 --network lenet
// ctest expects: --batch 128 is more than the 100 samples of each rank
// ctest: --threads-as-ranks 2 --svg speed_up
// ctest expects: --svg does nothing without --processes
// ctest: --threads-as-ranks 2 --processes 1,2 --record times.csv
// ctest expects: --record does nothing with --processes
// ctest: --threads-as-ranks 2 --processes 2,2
// ctest expects: --processes has 2 twice
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <skein/mpi.hpp>
#include <skein/skein.hpp>

#include "support/flag_checks.hpp"
#include "support/output_files.hpp"
#include "support/recorded_runs.hpp"
#include "support/results.hpp"
namespace sk = skein;
namespace ex = experiments;

namespace {

struct Logistic : sk::nn::Sequential<sk::nn::Flatten, sk::nn::Linear<10>> {};
// clang-format off
struct LeNet : sk::nn::Sequential<
    sk::nn::Conv2d<6, sk::Kernel<5>, sk::Padding<2>>, sk::nn::Relu, sk::nn::MaxPool2d<2>,
    sk::nn::Conv2d<16, sk::Kernel<5>>,                sk::nn::Relu, sk::nn::MaxPool2d<2>,
    sk::nn::Flatten, sk::nn::Linear<120>, sk::nn::Relu, sk::nn::Linear<84>, sk::nn::Relu, sk::nn::Linear<10>> {};
// clang-format on

struct Options {
  std::string network = "logistic", data, record, json, svg;
  std::vector<int> processes;
  int epochs = 1, threads = 1, threads_as_ranks = 0, rounds = 5;
  long batch = 128, samples = 0;  // a rank's batch; 0: all samples

  void flags(sk::Flags& f) {
    f.about("MNIST over ranks: logistic regression with Adam, or LeNet with summed gradients");
    f("network", network, "logistic or lenet").one_of({"logistic", "lenet"});
    f("epochs", epochs, "how many").within(1, 100'000);
    f("batch", batch, "samples of a rank in a step").within(1, 1'000'000);
    f("samples", samples, "take only so many; 0: all").within(0, 1'000'000'000);
    f("threads", threads, "workers of a rank").within(1, 1024);
    f("threads-as-ranks", threads_as_ranks, "so many threads of this process; 0: the processes of mpirun").within(0, 256);
    f("processes", processes, "measures these numbers of ranks in turns").within(1, 1024);
    f("rounds", rounds, "of these measurements").within(1, 10'000);
    f("svg", svg, "draws their speed-up in NAME.svg");
    f("json", json, "adds their figures to this file");
    f("data", data, "folder of MNIST");
    f("record", record, "without --processes: adds the time to this file, reads the time of one rank there");
  }
};

/// The paper's figures are of all of MNIST, and of the logistic regression.
bool has_paper(const Options& o, const sk::data::SourcedTrainTest& digits) {
  return o.network == "logistic" && o.samples == 0 && !digits.synthetic;
}

template <class Comm> void report(Comm& world, const Options& o, const sk::data::SourcedTrainTest& digits, double seconds) {
  const int ranks = world.size();
  std::printf("%s on %s%s: %d ranks (%s), %d epochs, batch %ld a rank, %.2f s\n", o.network.c_str(), digits.source.c_str(),
              ex::first_images(o.samples).c_str(), ranks, std::string(Comm::name).c_str(), o.epochs, o.batch, seconds);
  if (!o.record.empty()) {
    const std::string settings = o.network + " " + std::string(Comm::name) + " x" + std::to_string(o.threads) + " " +
                                 std::to_string(o.epochs) + " epochs of " + std::to_string(digits.train.size()) + " by " +
                                 std::to_string(o.batch);
    std::printf("%s\n", ex::record_run(o.record, settings, ranks, seconds).c_str());
  }
  if (has_paper(o, digits))
    std::printf(
        "the paper's seconds on 1, 2, 4 cores: 240.6, 130.6, 81.5 (efficiency 0.92, 0.74); test accuracy 91.4 %% after an "
        "epoch\n");
}

/// Seconds of the epochs of a training from its start on these ranks. `say`: rank 0 prints a line a rank.
template <class Network, class Comm, class Optimizer>
double train(Comm& world, const Options& o, const sk::data::SourcedTrainTest& digits, const Optimizer& optimizer,
             sk::parallel::DataParallelOptions how, bool say) {
  const auto shard = digits.train.slice(sk::data::even_part(digits.train.size(), world.size(), world.rank()),
                                        sk::data::even_part(digits.train.size(), world.size(), world.rank() + 1));
  sk::Model<Network, sk::Shape<28, 28, 1>, sk::Cpu> model{sk::Seed{42}};
  double seconds = 0;
  {
    sk::Trainer trainer{model, sk::nn::CrossEntropy{}, optimizer, sk::parallel::DataParallel{world, how}};
    const sk::FitOptions fit{.epochs = o.epochs,
                             .progress = false,
                             .threads = o.threads,
                             .loader = {.batch_per_rank = o.batch, .partition = sk::data::Partition::local}};
    seconds = trainer.fit(shard, fit).seconds();
  }
  // Each rank for itself: its shard, and the whole test set.
  sk::Trainer alone{model, sk::nn::CrossEntropy{}, optimizer};
  const auto test = alone.evaluate(digits.test);
  if (say) {
    const auto own = alone.evaluate(shard);
    char line[160];
    std::snprintf(line, sizeof line, "rank %d: train loss %.4f, train accuracy %.2f %%, test loss %.4f, test accuracy %.2f %%",
                  world.rank(), own.loss, 100 * own.accuracy, test.loss, 100 * test.accuracy);
    for (const std::string& text : world.all_gather(std::string(line)))
      if (world.rank() == 0) std::printf("%s\n", text.c_str());
  }
  const double least = world.all_reduce(test.loss, sk::Min{}), greatest = world.all_reduce(test.loss, sk::Max{});
  if (!(least == greatest))
    throw sk::Error("11_mnist_over_mpi: test losses from " + std::to_string(least) + " to " + std::to_string(greatest) +
                    ": the ranks' weights differ");
  return seconds;
}

template <class Comm> double train(Comm& world, const Options& o, const sk::data::SourcedTrainTest& digits, bool say) {
  if (o.network == "lenet")
    return train<LeNet>(world, o, digits, sk::optim::Sgd{.lr = 1e-3f, .momentum = 0.85f}, {.reduce = sk::parallel::Reduce::Sum},
                        say);
  return train<Logistic>(world, o, digits, sk::optim::Adam{.lr = 1e-3f}, {}, say);
}

/// So many ranks, and the seconds of their turns, two of each round.
template <class Comm> struct Trial {
  int ranks;
  Comm group;
  std::vector<double> there{}, back{};

  /// Of each round, against the ranks of the first trial.
  std::vector<double> efficiency(const Trial& one) const {
    std::vector<double> e;
    for (std::size_t i = 0; i < there.size(); ++i)
      e.push_back((one.there[i] + one.back[i]) / (there[i] + back[i]) * one.ranks / ranks);
    return e;
  }
  double seconds() const {
    std::vector<double> all = there;
    all.insert(all.end(), back.begin(), back.end());
    return bench::median(all);
  }
};

/// The paper's efficiency on so many cores; NAN where it has none, or no figures of such a training.
double paper(bool has_paper, int ranks) {
  if (!has_paper) return NAN;
  return ranks == 1 ? 1.0 : ranks == 2 ? 0.92 : ranks == 4 ? 0.74 : NAN;
}

/// All numbers of ranks in turns.
template <class Comm> int turns(Comm& world, const Options& o, const sk::data::SourcedTrainTest& digits) {
  std::vector<Trial<Comm>> trials;
  for (const int ranks : o.processes) {
    if (ranks > world.size())
      throw sk::ArgumentError(std::to_string(ranks) + " processes are wanted, " + std::to_string(world.size()) + " were started");
    trials.push_back({ranks, world.split(world.rank() < ranks ? 0 : 1)});
  }
  const auto turn = [&](Trial<Comm>& t, std::vector<double>& seconds, bool say) {
    world.barrier();
    if (world.rank() >= t.ranks) return;
    if (say && world.rank() == 0) std::printf("-- %s, %d ranks\n", o.network.c_str(), t.ranks);
    seconds.push_back(train(t.group, o, digits, say));
  };
  std::vector<double> first;  // files are read, memory is touched
  for (Trial<Comm>& t : trials) turn(t, first, true);
  for (int round = 0; round < o.rounds; ++round) {
    for (Trial<Comm>& t : trials) turn(t, t.there, false);
    for (std::size_t i = trials.size(); i-- > 0;) turn(trials[i], trials[i].back, false);
  }
  world.barrier();
  if (world.rank() != 0) return 0;
  const Trial<Comm>& one = trials.front();
  const std::string kind = Comm::name == "MpiComm" ? "processes" : "threads";
  const int cores = sk::available_cores();
  const bool beside_paper = has_paper(o, digits);
  const std::string job = o.network + (digits.synthetic ? ", synthetic digits" : "") + ex::first_images(o.samples);
  std::printf("%s on %s%s: %d epochs, batch %ld a rank, %d cores\n", o.network.c_str(), digits.source.c_str(),
              ex::first_images(o.samples).c_str(), o.epochs, o.batch, cores);
  ex::Results results("mnist_over_mpi", {.json = o.json});
  std::vector<std::string> heads{kind, "seconds", "speed-up", "efficiency"};
  if (beside_paper) heads.push_back("the paper's");
  ex::Table table{heads};
  sk::draw::Plot plot{.title = "Speed-up, " + job,
                      .x_label = kind + " on " + std::to_string(cores) + " cores",
                      .y_label = "speed-up" + (one.ranks > 1 ? " over " + std::to_string(one.ranks) + " " + kind : ""),
                      .from_zero = true};
  plot.series = {{.name = "measured"}, {.name = "linear", .marks = false, .dashed = true}};
  if (beside_paper) plot.series.push_back({.name = "the paper's"});
  for (const Trial<Comm>& t : trials) {
    const ex::Interval e = bench::bootstrap(t.efficiency(one));
    const double more = static_cast<double>(t.ranks) / one.ranks, speed_up = e.median * more;
    const double the_papers = paper(beside_paper, t.ranks) / paper(beside_paper, one.ranks);  // over as many ranks as ours
    std::vector<std::string> cells{std::to_string(t.ranks), ex::cell(t.seconds()), ex::cell(speed_up),
                                   ex::cell(e.median, e.low, e.high)};
    if (beside_paper) cells.push_back(ex::cell(the_papers));
    table.row(cells);
    for (auto& s : plot.series) s.x.push_back(t.ranks);
    plot.series[0].y.push_back(speed_up), plot.series[0].error.push_back((e.high - e.low) / 2 * more);
    plot.series[1].y.push_back(more);
    if (beside_paper) plot.series[2].y.push_back(the_papers * more);
    if (t.ranks == one.ranks) continue;
    ex::Line line{.metric = job + ", " + std::to_string(t.ranks) + " " + kind,
                  .ours = t.seconds(),
                  .peer = one.seconds(),
                  .peer_name = std::to_string(one.ranks) + (one.ranks > 1 ? " ranks" : " rank"),
                  .unit = "s",
                  .ratio = e};
    if (one.ranks == 1 && t.ranks == 2 && 2 * o.threads <= cores) line.must = {0.93, {}, true};
    line.add("the ratio is the efficiency; speed-up " + ex::cell(speed_up));
    if (beside_paper) line.add("the paper's efficiency " + ex::cell(the_papers));
    if (t.ranks * o.threads > cores)
      line.add(std::to_string(t.ranks) + (o.threads > 1 ? " of " + std::to_string(o.threads) + " threads" : "") + " share " +
               std::to_string(cores) + (cores > 1 ? " cores" : " core"));
    results.add(line);
  }
  table.print();
  if (!o.svg.empty()) {
    plot.write(o.svg + ".svg");
    std::printf("drawn: %s.svg\n", o.svg.c_str());
  }
  return results.finish();
}

/// Throws FlagError for what a run with, or without, --processes does not look at, and for a number that is there twice.
void check_flags(const Options& o) {
  const bool turns = !o.processes.empty();
  ex::check_distinct("processes", o.processes);
  ex::check_unused("record", turns && !o.record.empty(), "with --processes");
  ex::check_unused("rounds", !turns && o.rounds != Options{}.rounds, "without --processes");
  ex::check_unused("svg", !turns && !o.svg.empty(), "without --processes");
  ex::check_unused("json", !turns && !o.json.empty(), "without --processes");
}

template <class Comm> int run(Comm& world, Options o) {
  if (world.rank() == 0) ex::check_outputs({.json = o.json, .record = o.record, .svg = o.svg});
  int status = 0;
  auto digits = sk::data::mnist_or_synthetic(o.data);
  const bool smaller = ex::take_samples(digits, o.samples);
  if (!smaller) o.samples = 0;  // all
  const int most =
      o.processes.empty() ? world.size() : std::min(world.size(), *std::max_element(o.processes.begin(), o.processes.end()));
  ex::check_at_most("batch", o.batch, digits.train.size() / most, "samples of each rank", ex::more_samples(smaller));
  if (o.processes.empty()) {
    const double seconds = train(world, o, digits, true);
    if (world.rank() == 0) report(world, o, digits, seconds);
  } else {
    status = turns(world, o, digits);
  }
  if (world.rank() == 0) std::printf("all ranks have the same weights\n");
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  return sk::run<Options>(argc, argv, [&](const Options& o) {
    check_flags(o);
    if (o.threads_as_ranks > 0) {
      int status = 0;
      sk::spawn(o.threads_as_ranks, [&](sk::ThreadComm& world) {
        const int of_rank = run(world, o);
        if (world.rank() == 0) status = of_rank;
      });
      return status;
    }
    sk::MpiComm world{argc, argv};
    return run(world, o);
  });
}
