// SPDX-License-Identifier: Apache-2.0
// What would 1 to 4,096 ranks bring? Simulated, and beside it what can be measured here. (1) The tutorial's table of 1 to 8 GPUs,
// by a link that its row of two GPUs gives; (2) a step of the tutorial's regression by real threads, as many as there are cores,
// and what the simulator says of it; (3) the same step on up to 4,096 ranks: each all-reduce, jitter, rare exchanges, servers;
// (4) advice for this job; (5) virtual workers: real gradients of many ranks in this process, loss against simulated time for
// several policies.
//     14_scaling_simulated --svg scaling --workers 16
// ctest: --ranks 64 --rounds 5 --samples 2000 --batch 250 --workers 4 --epochs 2 --svg scaling
// ctest expects: simulated: 4 ranks
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <skein/comm/measure.hpp>
#include <skein/comm/sim/sim_comm.hpp>
#include <skein/comm/thread/spawn.hpp>
#include <skein/core/run.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/nn/fused/linear_activation.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/average/model_average.hpp>
#include <skein/parallel/simulate/simulated.hpp>
#include <skein/parallel/data/sync_every.hpp>
#include <skein/plan/advise.hpp>
#include <skein/train/trainer.hpp>

#include "support/cluster_flags.hpp"
#include "support/output_files.hpp"
#include "support/results.hpp"
namespace sk = skein;
namespace ex = experiments;
namespace plan = skein::plan;

namespace {

struct FunctionFit : sk::nn::Sequential<sk::nn::Linear<80>, sk::nn::Relu, sk::nn::Linear<80>, sk::nn::Relu, sk::nn::Linear<40>,
                                        sk::nn::Relu, sk::nn::Linear<1>> {};
using Model = sk::Model<FunctionFit, sk::Shape<1>, sk::Cpu>;
constexpr double gradient_bytes = 4.0 * static_cast<double>(Model::sizes.stored + sk::gradient_tail);

struct Options : ex::ClusterFlags {
  int ranks = 4096, workers = 16, epochs = 60, rounds = 60, seeds = 3;
  long samples = 80'000, batch = 1000;
  std::string json, svg;

  void flags(sk::Flags& f) {
    f.about("Scaling to 4,096 ranks, simulated, beside what can be measured here");
    f("ranks", ranks, "up to so many").within(1, 65536);
    ClusterFlags::flags(f);
    f("samples", samples, "of an epoch").within(1, 1'000'000'000);
    f("batch", batch, "of a rank").within(1, 1'000'000);
    f("workers", workers, "virtual workers").within(1, 512);
    f("epochs", epochs, "of the virtual workers").within(1, 100'000);
    f("seeds", seeds, "of the virtual workers").within(1, 100);
    f("rounds", rounds, "of the measurement: the least counts").within(1, 100'000);
    f("svg", svg, "draws SVGs whose names begin so");
    f("json", json, "adds figures to this file, an object a line");
  }
};

/// The tutorial's function; `normalized`: its argument in -2 to 2, so that few steps show something.
auto wave(long samples, bool normalized = false) {
  std::vector<float> x, y;
  for (long i = 0; i < samples; ++i) {
    x.push_back(20 * sk::random_uniform(1, 1, static_cast<std::uint64_t>(i)));
    y.push_back(std::sqrt(x.back()) * std::sin(3.14f * x.back() / 5));
    if (normalized) x.back() = x.back() / 5 - 2;
  }
  return sk::data::from_tensors(x, y);
}

// ---- (1)
void gpus(const Options& o) {
  const double real[] = {934, 489, 249, 139};
  const double compute = real[0] / 800'000,
               two = real[1] / 400'000 - compute;  // 10,000 epochs of 80 steps; of 40, with an exchange
  const double beta = 1e-10;
  const plan::Level link{two - beta * gradient_bytes, beta};
  std::printf(
      "\n(1) 10,000 epochs on GPUs of the tutorial, seconds. The link of the simulation is what its row of two GPUs gives: %s "
      "and 10 GB/s\n",
      plan::detail::seconds_in_words(link.alpha).c_str());
  ex::Table table{{"GPUs", "measured there", "simulated", "difference", "speed-up there", "simulated"}};
  sk::draw::Plot plot{
      .title = "10,000 epochs on GPUs: the tutorial, and simulated", .x_label = "GPUs", .y_label = "seconds", .from_zero = true};
  plot.series = {{.name = "measured there"}, {.name = "simulated", .dashed = true}};
  for (int i = 0, n = 1; i < 4; ++i, n *= 2) {
    const double s = 800'000.0 / n * (compute + (n > 1 ? plan::all_reduce_seconds({link, link, 0, 0}, n, gradient_bytes) : 0));
    table.row({std::to_string(n), ex::cell(real[i]), ex::cell(s), i < 2 ? "given" : ex::cell(100 * (s / real[i] - 1)) + " %",
               ex::cell(real[0] / real[i]), ex::cell(real[0] / s)});
    for (std::size_t k = 0; k < 2; ++k) plot.series[k].x.push_back(n), plot.series[k].y.push_back(k ? s : real[i]);
  }
  table.print();
  if (!o.svg.empty()) plot.write(o.svg + "_gpus.svg");
}

// ---- the step, measured
/// Least seconds of a step of `batch` samples on each of so many threads that never exchange, or do in every step.
template <class Policy> double step_seconds(sk::ThreadComm& world, const Policy& policy, const Options& o) {
  auto data = wave(o.batch * world.size());
  Model model{sk::Seed{1}};
  sk::train::TrainStep<Model, sk::nn::Mse, sk::optim::Sgd, Policy> train_step(model, {}, sk::optim::Sgd{.lr = 1e-4f}, policy);
  train_step.reserve({.capacity = o.batch, .threads = 1});
  double least = 1e9;
  sk::data::LoaderOptions how;
  how.batch_per_rank = o.batch;
  how.ranks = world.size(), how.rank = world.rank();
  how.prefetch = sk::data::Prefetch::off;
  sk::data::Loader<float> loader(data, how);
  for (const auto& batch : loader.epoch(0))
    for (int round = 0; round < o.rounds; ++round) {
      world.barrier();
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < 5; ++i) train_step.step(batch);
      least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / 5);
    }
  return world.all_reduce(least, sk::Max{});
}

// ---- (3)
void thousands(const Options& o, double compute) {
  const plan::Network network = o.network();
  std::printf(
      "\n(3) simulated: the same step with %ld samples a rank computes for %s (measured here, a core). Links: within a node of "
      "%d\n"
      "    %.3g us and %.3g GB/s, between nodes %.3g us and %.3g GB/s. Microseconds an exchange adds; efficiency is against one "
      "rank\n",
      o.batch, plan::detail::seconds_in_words(compute).c_str(), o.node, o.near_us, o.near_gb, o.far_us, o.far_gb);
  ex::Table table{{"ranks", "ring", "doubling", "torus", "hierarchical", "1 server", "4 servers", "chosen", "efficiency",
                   "with jitter", "every 10th", "epoch, s"}};
  sk::draw::Plot plot{
      .title = "Efficiency, simulated", .x_label = "ranks", .y_label = "efficiency", .log_x = true, .from_zero = true};
  plot.series = {{.name = "cheapest all-reduce"},
                 {.name = "ring"},
                 {.name = "one server"},
                 {.name = "cheapest, jitter"},
                 {.name = "every 10th step"}};
  for (int n = 1; n <= o.ranks; n *= 2) {
    const auto by = [&](plan::AllReduceAlgorithm a) {
      return n > 1 ? plan::all_reduce_seconds(network, n, gradient_bytes, static_cast<int>(a)) : 0;
    };
    const double ring = by(plan::AllReduceAlgorithm::ring), doubling = by(plan::AllReduceAlgorithm::recursive_doubling),
                 torus = by(plan::AllReduceAlgorithm::torus), tree = by(plan::AllReduceAlgorithm::hierarchical);
    const plan::Level& level = n <= network.node ? network.near : network.far;
    const double one = n > 1 ? plan::server_seconds(level, n, 1, gradient_bytes) : 0,
                 four = n > 1 ? plan::server_seconds(level, n, 4, gradient_bytes) : 0;
    const plan::AllReduceChoice choice = plan::cheapest_all_reduce(network, n, gradient_bytes);
    const auto efficiency = [&](double exposed, double jitter, long period) {
      return compute * 100 /
             plan::seconds_of(
                 {.ranks = n, .steps = 100, .compute = compute, .exposed = exposed, .period = period, .jitter = jitter});
    };
    const double values[] = {efficiency(choice.seconds, 0, 1), efficiency(ring, 0, 1), efficiency(one, 0, 1),
                             efficiency(choice.seconds, o.jitter, 1), efficiency(choice.seconds, o.jitter, 10)};
    const double steps = static_cast<double>(o.samples) / (static_cast<double>(n) * static_cast<double>(o.batch));
    table.row({std::to_string(n), ex::cell(1e6 * ring), ex::cell(1e6 * doubling), ex::cell(1e6 * torus), ex::cell(1e6 * tree),
               ex::cell(1e6 * one), ex::cell(1e6 * four), n > 1 ? std::string(plan::name_of(choice.algorithm)) : "-",
               ex::cell(values[0]), ex::cell(values[3]), ex::cell(values[4]),
               steps >= 1 ? ex::cell(steps * compute / values[0]) : "-"});
    for (std::size_t k = 0; k < 5; ++k) plot.series[k].x.push_back(n), plot.series[k].y.push_back(values[k]);
  }
  table.print();
  if (!o.svg.empty()) plot.write(o.svg + "_efficiency.svg");
}

// ---- (2)
/// What real threads give, and the simulator from one thread's step and the measured all-reduce.
double beside_real(const Options& o, ex::Results& results) {
  const int cores = std::min(4, sk::available_cores());
  std::printf(
      "\n(2) a step of 1-80-80-40-1 by threads of this machine, and simulated from the step without exchange and the measured "
      "all-reduce\n");
  ex::Table table{{"ranks", "never exchanged", "measured", "simulated", "difference"}};
  double compute = 0;
  for (int n = 1; n <= cores; n *= 2) {
    double never = 0, every = 0;
    plan::Level own{};
    sk::spawn(n, [&](sk::ThreadComm& world) {
      const double a = step_seconds(world, sk::parallel::SingleProcess{}, o),
                   b = step_seconds(world, sk::parallel::DataParallel{world}, o);
      const plan::Level level =
          n > 1 ? plan::fit_level(sk::comm::all_reduce_times(world, {.bytes = {4096, 16384, 65536}, .repeats = 200, .node = 0}))
                      .level
                : plan::Level{};
      if (world.rank() == 0) never = a, every = b, own = level;
    });
    if (n == 1) compute = never;
    const double simulated = never + (n > 1 ? own.seconds(gradient_bytes) : 0);
    table.row({std::to_string(n), ex::cell(1e6 * never) + " us", ex::cell(1e6 * every) + " us", ex::cell(1e6 * simulated) + " us",
               ex::cell(100 * (simulated / every - 1)) + " %"});
    if (n == 1) continue;
    ex::Line line{.metric = "a step on " + std::to_string(n) + " threads: simulated against measured",
                  .ours = 1e6 * simulated,
                  .peer = 1e6 * every,
                  .peer_name = "measured",
                  .unit = "us"};
    line.add("simulated from the least step without exchange and the measured all-reduce");
    results.add(line);
  }
  table.print();
  return compute;
}

// ---- (5)
struct Curve {
  std::vector<double> seconds{}, losses{};
};
/// A training of virtual workers: loss of the epochs over all ranks, and the simulated time of their ends.
template <class Make> Curve curve(const Options& o, double compute, std::uint64_t seed, const Make& make, std::string& report) {
  Curve c;
  const sk::SimReport r =
      sk::simulate(o.workers, {.network = o.network(), .jitter = o.jitter, .seed = sk::Seed{seed}}, [&](sk::SimComm& world) {
        const auto data = wave(std::min(o.samples, 4000L), true);
        const auto policy = make(world);
        Model model{sk::Seed{seed}};
        sk::Trainer trainer{
            model, sk::nn::Mse{}, sk::optim::Sgd{.lr = 0.005f, .momentum = 0.9f},
            sk::parallel::Simulated{policy, world, plan::compute_times(10 * compute / static_cast<double>(o.batch))}};
        const auto note = [&](sk::train::EpochRecord& record) {
          if (world.rank() == 0) c.seconds.push_back(world.now()), c.losses.push_back(record.training.loss);
        };
        trainer.fit(data,
                    {.epochs = o.epochs, .callbacks = {note}, .progress = false, .threads = 1, .loader = {.batch_per_rank = 10}});
      });
  report = r.text();
  return c;
}
void virtual_workers(const Options& o, double compute) {
  std::printf(
      "\n(5) virtual workers: %d ranks of this process with real gradients, batch 10 a rank (which computes for %s), on the "
      "links\n"
      "    of (3), %.0f %% jitter; %d epochs, %d seeds\n",
      o.workers, plan::detail::seconds_in_words(10 * compute / static_cast<double>(o.batch)).c_str(), 100 * o.jitter, o.epochs,
      o.seeds);
  ex::Table table{{"policy", "training loss of the last epoch", "simulated ms", "ms waiting a rank", "messages"}};
  sk::draw::Plot plot{.title = "Virtual workers: loss against simulated time",
                      .x_label = "milliseconds, simulated",
                      .y_label = "training loss",
                      .log_y = true};
  const auto row = [&](const char* name, const auto& make) {
    std::vector<double> losses, seconds, waited;
    long messages = 0;
    std::string report;
    for (int seed = 1; seed <= o.seeds; ++seed) {
      const Curve c = curve(o, compute, static_cast<std::uint64_t>(seed), make, report);
      losses.push_back(c.losses.back());
      seconds.push_back(1e3 * c.seconds.back());
      double total = 0, waiting = 0;
      std::size_t ranks = 0;
      std::sscanf(report.c_str(), "simulated: %zu ranks, %lf s; of a rank %*f s compute, %lf s waiting; %ld", &ranks, &total,
                  &waiting, &messages);
      waited.push_back(1e3 * waiting);
      if (seed > 1) continue;
      plot.series.push_back({.name = name, .x = {}, .y = c.losses, .marks = false});
      for (const double s : c.seconds) plot.series.back().x.push_back(1e3 * s);
    }
    table.row({name, ex::cell(losses), ex::cell(seconds), ex::cell(waited), std::to_string(messages)});
    return report;
  };
  const std::string report = row("gradients in every step", [](sk::SimComm& w) { return sk::parallel::DataParallel{w}; });
  row("gradients in every 10th", [](sk::SimComm& w) { return sk::parallel::DataParallel{w, sk::parallel::SyncEvery<10>{}}; });
  row("models averaged every 10", [](sk::SimComm& w) { return sk::parallel::ModelAverage{w, sk::parallel::Period<10>{}}; });
  table.print();
  std::printf("%s\n", report.c_str());
  if (!o.svg.empty()) plot.write(o.svg + "_workers.svg");
}

int run(const Options& o) {
  ex::check_outputs({.json = o.json, .svg = o.svg});
  ex::Results results("scaling_simulated", {.json = o.json});
  gpus(o);
  const double compute = beside_real(o, results);
  thousands(o, compute);
  const plan::Advice advice = plan::advise({.layers = Model::program.layers(),
                                            .scalars = Model::sizes.stored,
                                            .step_seconds = compute,
                                            .samples = o.samples,
                                            .batch = o.batch,
                                            .network = o.network(),
                                            .most_ranks = o.ranks,
                                            .overlap = false});
  std::printf("\n(4) plan::advise says:\n%s", advice.text().c_str());
  ex::Line line{
      .metric = "best number of ranks for " + std::to_string(o.samples) + " samples", .ours = advice.best.ranks, .unit = "ranks"};
  line.add("simulated; " + ex::cell(advice.best.speedup) + " times as fast as one");
  results.add(line);
  virtual_workers(o, compute);
  if (!o.svg.empty())
    std::printf("drawn: %s_gpus.svg, %s_efficiency.svg, %s_workers.svg\n", o.svg.c_str(), o.svg.c_str(), o.svg.c_str());
  return results.finish();
}

}  // namespace

int main(int argc, char** argv) { return sk::run<Options>(argc, argv, run); }
