// SPDX-License-Identifier: Apache-2.0
// What do more processes than cores cost? The tutorial's regression (1-80-80-40-1, 80,000 samples, batch 1000 a process,
// gradients averaged in every step) on 1, 2, 4 and 8 ranks of the same machine, each with its share of the cores. One start for
// all: ranks that have no part in a trial sleep, and trials take turns (1 2 4 8 8 4 2 1), so that ratios are of neighbours in
// time.
//     mpirun --oversubscribe --bind-to none -n 8 10_processes_and_cores --svg processes
// ctest on 4 ranks: --processes 1,2,4 --samples 4000 --batch 500 --rounds 2 --svg processes
// ctest on 2 ranks: --processes 1,2 --samples 4000 --batch 500 --rounds 2 --same-batch
// ctest expects: all ranks have the same weights
// ctest on 4 ranks: --processes 2,4 --samples 2000 --batch 500 --rounds 1
// ctest expects: 2 processes over itself.*over 2 processes
// ctest on 2 ranks: --processes 1,2 --samples 1000
// ctest expects: --batch 1000 is more than the 500 samples of each process
// ctest on 2 ranks: --processes 1,1
// ctest expects: --processes has 1 twice
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <skein/mpi.hpp>
#include <skein/skein.hpp>

#include "support/flag_checks.hpp"
#include "support/output_files.hpp"
#include "support/results.hpp"
namespace sk = skein;
namespace ex = experiments;

namespace {

struct FunctionFit : sk::nn::Sequential<sk::nn::Linear<80>, sk::nn::Relu, sk::nn::Linear<80>, sk::nn::Relu, sk::nn::Linear<40>,
                                        sk::nn::Relu, sk::nn::Linear<1>> {};
using Model = sk::Model<FunctionFit, sk::Shape<1>, sk::Cpu>;

struct Options {
  std::vector<int> processes{1, 2, 4, 8};
  int threads = 0, epochs = 1, rounds = 30;
  long samples = 80'000, batch = 1000;
  bool same_batch = false;
  std::string json, svg;

  void flags(sk::Flags& f) {
    f.about("1, 2, 4, 8 processes on the same cores");
    f("processes", processes, "how many, the first is compared with").within(1, 100'000);
    f("threads", threads, "workers of a rank; 0: its share of the cores").within(0, 1024);
    f("samples", samples, "of the regression").within(1, 100'000'000);
    f("batch", batch, "samples of a process in a step").within(1, 1'000'000);
    f("same-batch", same_batch, "the batch is of all processes together: as many steps with 8 as with 1");
    f("epochs", epochs, "of one turn").within(1, 100'000);
    f("rounds", rounds, "each has two turns of every number of processes").within(1, 100'000);
    f("svg", svg, "draws NAME.svg");
    f("json", json, "adds the figures to this file");
  }
};

/// The training of so many ranks; made and run by those alone.
struct Team {
  sk::MpiComm group;
  Model model{sk::Seed{1}};
  sk::Trainer<Model, sk::nn::Mse, sk::optim::Sgd, sk::parallel::DataParallel<sk::MpiComm>> trainer;

  explicit Team(sk::MpiComm ranks)
      : group(std::move(ranks)), trainer(model, sk::nn::Mse{}, sk::optim::Sgd{.lr = 0.005f}, sk::parallel::DataParallel{group}) {}
};

/// What came of so many ranks. Seconds are of an epoch, one of each round and direction.
struct Trial {
  int ranks = 0, threads = 0;
  std::vector<double> there{}, back{};
  double first = 0, last = 0;  // training loss

  std::vector<double> over(const Trial& one) const {  // of each round
    std::vector<double> r;
    for (std::size_t i = 0; i < there.size(); ++i) r.push_back((there[i] + back[i]) / (one.there[i] + one.back[i]));
    return r;
  }
  double seconds() const {
    std::vector<double> all = there;
    all.insert(all.end(), back.begin(), back.end());
    return bench::median(all);
  }
};

/// The tutorial's seconds on 1, 2, 4, 8 processes, of a cloud node and of a container on a four-core machine; 0 where it has
/// none.
double of_cloud_node(int ranks) { return ranks == 1 ? 1403 : ranks == 2 ? 1748 : ranks == 4 ? 3003 : ranks == 8 ? 4801 : NAN; }
double of_container(int ranks) { return ranks == 1 ? 1151 : ranks == 2 ? 1064 : ranks == 4 ? 1274 : ranks == 8 ? 1282 : NAN; }

int say(const Options& o, const std::vector<Trial>& trials) {
  const int cores = sk::available_cores();
  const Trial& one = trials.front();
  const std::string first = one.ranks == 1 ? "one process" : std::to_string(one.ranks) + " processes";
  ex::Results results("processes_and_cores", {.json = o.json});
  std::printf("%ld samples, batch %ld %s, %d cores; the tutorial's ratios: a cloud node, a container on four cores\n", o.samples,
              o.batch, o.same_batch ? "over all" : "a process", cores);
  ex::Table table{{"processes", "threads each", "s an epoch", "10,000 epochs", "over " + first, "cloud node", "container",
                   "first loss", "last"}};
  sk::draw::Plot plot{.title = "Time of a training over the time of " + first,
                      .x_label = "processes on " + std::to_string(cores) + " cores",
                      .y_label = "ratio",
                      .from_zero = true};
  plot.series = {{.name = "measured"}, {.name = "tutorial, cloud node"}, {.name = "tutorial, container"}};
  for (const Trial& t : trials) {
    const ex::Interval ratio = bench::bootstrap(t.over(one));
    const double node = of_cloud_node(t.ranks) / of_cloud_node(one.ranks),
                 container = of_container(t.ranks) / of_container(one.ranks);
    table.row({std::to_string(t.ranks), std::to_string(t.threads), ex::cell(t.seconds()), ex::cell(1e4 * t.seconds()) + " s",
               ex::cell(ratio.median, ratio.low, ratio.high), ex::cell(node), ex::cell(container), ex::cell(t.first),
               ex::cell(t.last)});
    plot.categories.push_back(std::to_string(t.ranks));
    plot.series[0].y.push_back(ratio.median), plot.series[0].error.push_back((ratio.high - ratio.low) / 2);
    plot.series[1].y.push_back(node);
    plot.series[2].y.push_back(container);
    if (&t == &one) continue;
    ex::Line line{.metric = std::to_string(t.ranks) + " processes, an epoch",
                  .ours = 1e3 * t.seconds(),
                  .peer = 1e3 * one.seconds(),
                  .peer_name = first,
                  .ratio = ratio};
    if (one.ranks == 1) line.must.bound = t.ranks <= cores ? 1.05 : t.ranks <= 2 * cores ? 1.25 : 1.5;
    line.add("the tutorial's ratio: " + ex::cell(node));
    results.add(line);
  }
  std::vector<double> itself;
  for (std::size_t i = 0; i < one.there.size(); ++i) itself.push_back(one.there[i] / one.back[i]);
  const ex::Interval same = bench::bootstrap(itself);
  std::printf("%s over itself: %s\n", first.c_str(), ex::cell(same.median, same.low, same.high).c_str());
  table.print();
  if (!o.svg.empty()) {
    plot.write(o.svg + ".svg");
    std::printf("drawn: %s.svg\n", o.svg.c_str());
  }
  return results.finish();
}

/// Throws FlagError for a number of processes that is there twice, and for a batch that the most processes do not have.
void check_flags(const Options& o, int started) {
  ex::check_distinct("processes", o.processes);
  if (o.same_batch) return ex::check_at_most("batch", o.batch, o.samples, "samples");
  const int most = std::min(started, *std::max_element(o.processes.begin(), o.processes.end()));
  ex::check_at_most("batch", o.batch, o.samples / most, "samples of each process", "more --samples", "fewer processes");
}

int run(sk::MpiComm& world, const Options& o) {
  check_flags(o, world.size());
  if (world.rank() == 0) ex::check_outputs({.json = o.json, .svg = o.svg});
  std::vector<float> x, y;
  for (long i = 0; i < o.samples; ++i) {
    x.push_back(20 * sk::random_uniform(1, 1, static_cast<std::uint64_t>(i)));
    y.push_back(std::sqrt(x.back()) * std::sin(3.14f * x.back() / 5));
  }
  const auto samples = sk::data::from_tensors(x, y);
  std::vector<Trial> trials;
  std::vector<std::unique_ptr<Team>> teams;
  for (const int ranks : o.processes) {
    if (ranks > world.size())
      throw sk::ArgumentError(std::to_string(ranks) + " processes are wanted, mpirun started " + std::to_string(world.size()));
    sk::MpiComm group = world.split(world.rank() < ranks ? 0 : 1);
    teams.push_back(world.rank() < ranks ? std::make_unique<Team>(std::move(group)) : nullptr);
    trials.push_back({.ranks = ranks, .threads = o.threads > 0 ? o.threads : std::max(1, sk::available_cores() / ranks)});
  }
  const auto train = [&](std::size_t i, std::vector<double>& seconds) {
    world.barrier();
    if (!teams[i]) return;
    sk::FitOptions how{.epochs = o.epochs, .progress = false, .threads = trials[i].threads};
    (o.same_batch ? how.batch : how.loader.batch_per_rank) = o.batch;
    const sk::History history = teams[i]->trainer.fit(samples, how);
    seconds.push_back(history.seconds() / o.epochs);
    if (trials[i].first == 0) trials[i].first = history.begin()->training.loss;
    trials[i].last = history.back().training.loss;
  };
  std::vector<double> warming;
  for (std::size_t i = 0; i < trials.size(); ++i) train(i, warming);
  for (int round = 0; round < o.rounds; ++round) {
    for (std::size_t i = 0; i < trials.size(); ++i) train(i, trials[i].there);
    for (std::size_t i = trials.size(); i-- > 0;) train(i, trials[i].back);
  }
  for (const auto& team : teams) {
    if (!team) continue;
    double sum = 0;
    const auto weights = team->model.parameters();
    for (std::size_t i = 0; i < weights.size; ++i) sum += static_cast<double>(weights.data[i]);
    if (!(team->group.all_reduce(sum, sk::Min{}) == team->group.all_reduce(sum, sk::Max{})))
      throw sk::Error("10_processes_and_cores: the weights of the ranks differ");
  }
  world.barrier();
  int status = 0;
  if (world.rank() == 0) {
    status = say(o, trials);
    std::printf("all ranks have the same weights\n");
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  return sk::run<Options>(argc, argv, [&](const Options& o) {
    int status = 0;
    sk::MpiComm world{argc, argv};
    world.run([&](sk::MpiComm& w) { status = run(w, o); });
    return status;
  });
}
