// SPDX-License-Identifier: Apache-2.0
// Synchronous against asynchronous SGD when one worker is slow, and servers against a ring. LeNet on MNIST over threads or
// processes; a worker sleeps in each step in place of a machine of its own, so that workers may outnumber cores; one of them
// sleeps several times as long, or in each step another. Every policy trains for the same seconds: gradients a second,
// accuracy then, how stale gradients were. Then, simulated, the same policies with the slow worker, beside what was measured,
// and on more workers over a network: from how many on the link of one server, two, four is full, and what a ring does there.
// ctest: --workers 2 --seconds 0.15 --seeds 1 --step 2 --samples 2000 --simulate 4 --svg servers --target 0
// ctest on 3 ranks: --processes --workers 2 --seconds 0.15 --seeds 1 --step 2 --samples 2000 --simulate 0 --target 0
// ctest expects: first 2000 images.*every policy reached
// ctest: --simulate 0 --compute 5
// ctest expects: --compute does nothing with --simulate 0
// ctest: --processes --simulate 0 --latency 5
// ctest expects: --latency does nothing with --simulate 0
// ctest: --workers 2 --samples 60 --batch 31 --seconds 0.1 --seeds 1 --simulate 0
// ctest: --processes --samples 60 --batch 10 --seconds 0.1 --seeds 1 --simulate 0
// ctest expects: --batch 31 is more than the 30 samples of each worker|mpirun has started 1 of the 6 processes
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <skein/comm/sim/sim_comm.hpp>
#include <skein/comm/thread/spawn.hpp>
#include <skein/core/run.hpp>
#include <skein/data/loader.hpp>
#include <skein/data/mnist_or_synthetic.hpp>
#include <skein/mpi.hpp>
#include <skein/nn/conv2d.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/max_pool2d.hpp>
#include <skein/nn/relu.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/average/gossip.hpp>
#include <skein/parallel/server/parameter_server.hpp>
#include <skein/parallel/simulate/simulated.hpp>
#include <skein/parallel/simulate/slowed.hpp>
#include <skein/train/trainer.hpp>

#include "support/flag_checks.hpp"
#include "support/output_files.hpp"
#include "support/results.hpp"
namespace sk = skein;
namespace ex = experiments;
using namespace sk::parallel;

namespace {

// clang-format off
struct LeNet : sk::nn::Sequential<
    sk::nn::Conv2d<6, sk::Kernel<5>, sk::Padding<2>>, sk::nn::Relu, sk::nn::MaxPool2d<2>,
    sk::nn::Conv2d<16, sk::Kernel<5>>,                sk::nn::Relu, sk::nn::MaxPool2d<2>,
    sk::nn::Flatten, sk::nn::Linear<120>, sk::nn::Relu, sk::nn::Linear<84>, sk::nn::Relu, sk::nn::Linear<10>> {};
// clang-format on
using Model = sk::Model<LeNet, sk::Shape<28, 28, 1>, sk::Cpu>;
using Clock = std::chrono::steady_clock;

struct Options {
  int workers = 4, seeds = 3, simulate = 64;
  long samples = 12'000, batch = 16;
  double seconds = 6, step = 8, slow = 5, target = 0.9;  // step: milliseconds that a worker sleeps; slow: times as long
  double compute = 2.5, latency = 20, bandwidth = 10;    // of the simulation: ms of a step, us, Gbit/s
  float lr = 0.03f;
  bool processes = false;
  std::string data, json, svg;

  void flags(sk::Flags& f) {
    f.about("Synchronous against asynchronous SGD with one slow worker; servers against a ring");
    f("workers", workers, "ranks that train; one or two more serve").within(2, 256);
    f("processes", processes, "ranks are the processes of mpirun: start workers + 2 (workers + 1: no row of two servers)");
    f("seconds", seconds, "of each training").within(0.01, 1e5);
    f("seeds", seeds, "trainings of each row").within(1, 100);
    f("step", step, "ms that a worker sleeps in a step").within(0, 1e5);
    f("slow", slow, "times as long sleeps the slow worker").within(1, 1e4);
    f("samples", samples, "take only so many; 0: all").within(0, 1'000'000'000);
    f("batch", batch, "samples of a worker in a step").within(1, 1'000'000);
    f("lr", lr, "rate of one worker's gradient");
    f("target", target, "the test accuracy to reach");
    f("simulate", simulate, "up to so many workers on a simulated network; 0: none").within(0, 1024);
    f("compute", compute, "simulated ms of a step").within(1e-6, 1e6);
    f("latency", latency, "simulated microseconds of a message").within(0, 1e6);
    f("bandwidth", bandwidth, "simulated Gbit a second").within(1e-6, 1e6);
    f("data", data, "folder of MNIST");
    f("svg", svg, "draws NAME_slow.svg and NAME_simulated.svg");
    f("json", json, "adds the figures to this file");
  }
};
double since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

struct Outcome {
  double per_second = 0, accuracy = 0;  // gradients of all workers
  ServerReport server{};
};

/// What a policy of this experiment is: which ranks it takes, whether all its ranks make the same number of steps, and whether
/// gradients are averaged over the workers, whose rate is theirs together then.
struct Kind {
  int servers = 0;
  bool lockstep = false, averages = true;
};

/// Nobody, worker 1 in every step, or in each step another one.
enum class Slow { nobody, one, turns };

template <class Comm, class Policy> Outcome train(Comm& world, const Policy& policy, const Kind& kind, const Options& o,
                                                  Slow slow, int seed, const sk::data::SourcedTrainTest& digits) {
  const int workers = world.size() - kind.servers;
  Model model{sk::Seed{static_cast<std::uint64_t>(seed)}};
  const sk::optim::Sgd sgd{.lr = o.lr * static_cast<float>(kind.averages ? workers : 1)};
  const SlowWorker pace{.rank = slow == Slow::turns ? each_in_turn : 1,
                        .seconds = 1e-3 * o.step * (slow == Slow::nobody ? 1 : o.slow),
                        .every = slow == Slow::turns ? workers : 1,
                        .others = 1e-3 * o.step};
  sk::train::TrainStep train_step{model, sk::nn::CrossEntropy{}, sgd, Slowed{policy, pace}};
  auto& policy_state = train_step.policy_state();
  double steps = 0;
  if (!policy_state.serves()) train_step.reserve({.capacity = o.batch, .threads = 1});
  world.barrier();
  const auto begin = Clock::now();
  if constexpr (sk::parallel::ServesUpdates<std::remove_reference_t<decltype(policy_state)>>) {
    if (policy_state.serves()) train_step.serve([](std::int64_t) { return 1.0; });
  }
  if (!policy_state.serves()) {
    const long n = static_cast<long>(digits.train.size());
    const auto shard = digits.train.slice(sk::data::even_part(n, workers, policy_state.rank()),
                                          sk::data::even_part(n, workers, policy_state.rank() + 1));
    const sk::data::LoaderOptions how{
        .batch = o.batch, .seed = model.seed(), .last = sk::data::LastBatch::drop, .prefetch = sk::data::Prefetch::off};
    sk::data::Loader<float> loader(shard, how);
    const auto over = [&] {
      double late[1] = {since(begin) >= o.seconds ? 1.0 : 0.0};
      if (kind.lockstep) policy_state.reduce(late);
      return late[0] > 0;
    };
    bool ended = false;
    for (std::int64_t epoch = 0; !ended; ++epoch)
      for (const auto& batch : loader.epoch(epoch)) {
        if ((ended = over())) break;
        (void)train_step.step(batch);
        ++steps;
      }
  }
  const double own = since(begin);
  if (auto lease = model.modify(); !policy_state.finish())
    lease.unchanged();  // before anything else that servers take part in: they serve until then
  const double seconds = world.all_reduce(policy_state.serves() ? 0 : own, sk::Max{});
  Outcome out{world.all_reduce(steps, sk::Sum{}) / seconds, 0, {}};
  if constexpr (requires { policy_state.report(); }) out.server = policy_state.report();
  sk::Trainer alone{model, sk::nn::CrossEntropy{}, sgd};
  if (world.rank() == 0) out.accuracy = alone.evaluate(digits.test).accuracy;
  return out;
}

struct Row {
  std::string name;
  Kind kind;
  std::vector<Outcome> even{}, one_slow{}, in_turn{};
  double simulated = NAN;  // gradients a second that one slow worker leaves
  static std::vector<double> of(const std::vector<Outcome>& all, double Outcome::*member) {
    std::vector<double> v;
    for (const Outcome& x : all) v.push_back(x.*member);
    return v;
  }
};

/// Calls f(name, kind, function that makes the policy of a communicator).
template <class F> void each_policy(const F& f) {
  f("all-reduce (synchronous)", Kind{0, true}, [](auto& c) { return DataParallel{c}; });
  f("gossip on a ring", Kind{0}, [](auto& c) { return Gossip{c}; });
  f("gossip, neighbours 8 late", Kind{0}, [](auto& c) { return Gossip{c, Staleness<8>{}}; });
  f("server, synchronous", Kind{1}, [](auto& c) { return ParameterServer{c, Staleness<0>{}}; });
  f("server, 8 ahead", Kind{1, false, false}, [](auto& c) { return ParameterServer{c, Staleness<8>{}}; });
  f("server, no bound", Kind{1, false, false}, [](auto& c) { return ParameterServer{c}; });
  f("server, rate by staleness", Kind{1, false, false}, [](auto& c) { return ParameterServer{c, {.rate = LateRate::divided}}; });
  f("2 servers, no bound", Kind{2, false, false}, [](auto& c) { return ParameterServer{c, {.servers = 2}}; });
}

/// Every policy, on as many of the ranks as it takes.
template <class Comm> std::vector<Row> measure(Comm& world, const Options& o, const sk::data::SourcedTrainTest& digits) {
  std::vector<Row> rows;
  each_policy([&](const char* name, Kind kind, const auto& make) {
    if (o.workers + kind.servers > world.size()) return;
    const bool takes_part = world.rank() < o.workers + kind.servers;
    Comm part = world.split(takes_part ? 0 : 1);
    Row r{name, kind};
    for (int seed = 1; takes_part && seed <= o.seeds; ++seed) {
      r.even.push_back(train(part, make(part), kind, o, Slow::nobody, seed, digits));
      r.one_slow.push_back(train(part, make(part), kind, o, Slow::one, seed, digits));
      r.in_turn.push_back(train(part, make(part), kind, o, Slow::turns, seed, digits));
    }
    world.barrier();
    rows.push_back(std::move(r));
  });
  return rows;
}

/// `first`: so many samples of the source were trained with; 0: all.
void say(const std::vector<Row>& rows, const Options& o, const std::string& source, long first, ex::Results& results) {
  const std::string data = ex::data_in_words(source, first);
  std::printf("LeNet on %s%s: %d workers that are %s, batch %ld a worker, %g s a training, %d seeds; cores: %d\n", source.c_str(),
              ex::first_images(first).c_str(), o.workers, o.processes ? "processes" : "threads", o.batch, o.seconds, o.seeds,
              sk::available_cores());
  std::printf("a step takes %g ms and more, where worker 1 is slow, or each in turn, %g ms\n", o.step, o.step * o.slow);
  ex::Table t{{"policy", "gradients / s", "accuracy", "one slow: / s", "of even", "simulated", "accuracy", "staleness, mean",
               "most", "ahead at most", "server busy", "in turn: / s", "of even", "accuracy"}};
  sk::draw::Plot plot{.title = "Gradients a second of " + std::to_string(o.workers) + " workers, " + data,
                      .x_label = "policy",
                      .y_label = "gradients a second"};
  plot.series = {{.name = "all alike"}, {.name = "one " + ex::cell(o.slow) + " times slower"}, {.name = "each in turn"}};
  plot.width = 1400;
  bool reached = !rows.empty();
  for (const Row& r : rows) {
    const auto even = Row::of(r.even, &Outcome::per_second), slow = Row::of(r.one_slow, &Outcome::per_second);
    const auto accuracy = Row::of(r.even, &Outcome::accuracy), then = Row::of(r.one_slow, &Outcome::accuracy);
    const auto turns = Row::of(r.in_turn, &Outcome::per_second), later = Row::of(r.in_turn, &Outcome::accuracy);
    const double all = ex::mean_and_deviation(even).mean, share = ex::mean_and_deviation(slow).mean / all;
    const double in_turn = ex::mean_and_deviation(turns).mean / all;
    const ServerReport& s = r.one_slow.back().server;
    const bool serves = r.kind.servers > 0;
    std::vector<std::string> cells{r.name,         ex::cell(even),  ex::cell(accuracy),
                                   ex::cell(slow), ex::cell(share), ex::cell(r.simulated)};
    cells.push_back(ex::cell(then));
    for (const double v : {s.mean_staleness, s.max_staleness, s.max_ahead, s.seconds > 0 ? s.busy / s.seconds : 0})
      cells.push_back(serves ? ex::cell(v) : "");
    for (const std::string& c : {ex::cell(turns), ex::cell(in_turn), ex::cell(later)}) cells.push_back(c);
    t.row(cells);
    reached = reached && ex::mean_and_deviation(accuracy).mean >= o.target;
    plot.categories.push_back(r.name);
    plot.series[0].y.push_back(ex::mean_and_deviation(even).mean),
        plot.series[0].error.push_back(ex::mean_and_deviation(even).deviation);
    plot.series[1].y.push_back(ex::mean_and_deviation(slow).mean),
        plot.series[1].error.push_back(ex::mean_and_deviation(slow).deviation);
    plot.series[2].y.push_back(ex::mean_and_deviation(turns).mean),
        plot.series[2].error.push_back(ex::mean_and_deviation(turns).deviation);
    ex::Line line{.metric = r.name + ": gradients a second that one slow worker leaves",
                  .ours = share,
                  .unit = "of all alike",
                  .threads = o.workers};
    line.add(data + ": accuracy " + ex::cell(ex::mean_and_deviation(accuracy).mean) + ", with the slow one " +
             ex::cell(ex::mean_and_deviation(then).mean) + "; where each is slow in turn " + ex::cell(in_turn) +
             " of the gradients; simulated: the slow one leaves " + ex::cell(r.simulated));
    results.add(line);
  }
  t.print();
  if (!o.svg.empty()) plot.write(o.svg + "_slow.svg"), std::printf("drawn: %s_slow.svg\n", o.svg.c_str());
  std::printf("%s policy reached an accuracy of %g with workers that are alike\n", reached ? "every" : "not each", o.target);
}

/// Runs loop(train step, world) on every worker of a simulated network; servers serve.
template <class Make, class Loop>
void on_a_network(int ranks, const sk::SimOptions& network, double step_seconds, const Make& make, const Loop& loop) {
  (void)sk::simulate(ranks, network, [&](sk::SimComm& world) {
    Model model{sk::Seed{1}};
    const auto policy = Simulated{make(world), world, sk::parallel::compute_times(step_seconds)};
    sk::train::TrainStep train_step{model, sk::nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.01f}, policy};
    auto& policy_state = train_step.policy_state();
    if constexpr (sk::parallel::ServesUpdates<std::remove_reference_t<decltype(policy_state)>>) {
      if (policy_state.serves()) train_step.serve([](std::int64_t) { return 1.0; });
    }
    if (!policy_state.serves()) {
      train_step.reserve({.capacity = 1, .threads = 1});
      const std::vector<float> x(static_cast<std::size_t>(Model::input::count), 0.5f);
      const std::vector<std::int32_t> labels(1, 3);
      sk::data::Batch<float> batch;
      batch.x = x.data(), batch.labels = labels.data();
      batch.pitch = Model::input::count;
      batch.count = batch.global_count = 1;
      policy_state.barrier();
      loop([&] { (void)train_step.step(batch); }, policy_state, world);
    }
    (void)policy_state.finish();
  });
}

/// Simulated seconds of a step: the policy's own code, LeNet's gradients, a network of one level.
template <class Make> double step_on_a_network(int workers, int servers, const Options& o, const Make& make) {
  constexpr int steps = 12;
  const sk::plan::Level link{1e-6 * o.latency, 8e-9 / o.bandwidth};
  double most = 0;
  const sk::SimOptions network{.network = {link, link, 0, 0}, .algorithm = sk::plan::AllReduceAlgorithm::ring};
  on_a_network(workers + servers, network, 1e-3 * o.compute, make, [&](const auto& step, auto&, sk::SimComm& world) {
    const double begin = world.now();
    for (int s = 0; s < steps; ++s) step();
    most = std::max(most, (world.now() - begin) / steps);  // one rank runs at a time
  });
  return most;
}

/// What the simulator says of one slow worker: the gradients of a second that it leaves, in trainings as long as the measured
/// ones, where a step takes what theirs took. (The shorter a training, the more of it are the steps that others may be ahead.)
void simulate_the_slow_one(std::vector<Row>& rows, const Options& o) {
  std::size_t at = 0;
  each_policy([&](const char* name, Kind kind, const auto& make) {
    if (at == rows.size() || rows[at].name != name) return;
    Row& row = rows[at++];
    const double even = o.workers / ex::mean_and_deviation(Row::of(row.even, &Outcome::per_second)).mean;
    double gradients[2] = {0, 0};
    const double slow = 1 + 1e-3 * o.step * (o.slow - 1) / even;
    for (int i : {0, 1})
      on_a_network(o.workers + kind.servers, {.slow = {1, i == 0 ? 1 : slow}}, even, make,
                   [&](const auto& step, auto& policy_state, sk::SimComm& world) {
                     const double end = world.now() + o.seconds;
                     while (true) {
                       double over[1] = {world.now() >= end ? 1.0 : 0.0};
                       if (kind.lockstep) policy_state.reduce(over);
                       if (over[0] > 0) break;
                       step();
                       ++gradients[i];
                     }
                   });
    row.simulated = gradients[1] / gradients[0];
  });
}

void simulate(const Options& o, ex::Results& results) {
  const double bytes = 4.0 * static_cast<double>(Model::sizes.stored), alpha = 1e-6 * o.latency, beta = 8e-9 / o.bandwidth;
  std::printf(
      "\nsimulated: LeNet steps of %g ms, %.0f kB of weights, links of %g us and %g Gbit/s; how much of the workers' time is "
      "training\n",
      o.compute, bytes / 1000, o.latency, o.bandwidth);
  ex::Table t{{"workers", "1 server, synchronous", "1 server", "2 servers", "4 servers", "ring all-reduce"}};
  sk::draw::Plot plot{.title = "Simulated: servers against a ring",
                      .x_label = "workers",
                      .y_label = "share of the workers' time that is training",
                      .log_x = true,
                      .from_zero = true};
  for (const char* name : {"1 server, synchronous", "1 server", "2 servers", "4 servers", "ring all-reduce"})
    plot.series.push_back({.name = name});
  const double alone = 1e-3 * o.compute;
  std::vector<double> seconds, first;
  int half = 0;
  for (int w = 1; w <= o.simulate; w *= 2) {
    seconds = {step_on_a_network(w, 1, o, [](sk::SimComm& c) { return ParameterServer{c, Staleness<0>{}}; })};
    for (int k : {1, 2, 4})
      seconds.push_back(step_on_a_network(w, k, o, [k](sk::SimComm& c) { return ParameterServer{c, {.servers = k}}; }));
    seconds.push_back(step_on_a_network(w, 0, o, [](sk::SimComm& c) { return DataParallel{c, {.bucket_bytes = 1 << 24}}; }));
    if (w == 1) first = seconds;
    if (alone / seconds[0] > 0.5) half = w;
    std::vector<std::string> cells{std::to_string(w)};
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      cells.push_back(ex::cell(alone / seconds[i]));
      plot.series[i].x.push_back(w), plot.series[i].y.push_back(alone / seconds[i]);
    }
    t.row(cells);
  }
  t.print();
  // A server receives a gradient and what announces it in so long; each worker sends one in the time of its step.
  for (std::size_t i = 1; i <= 3; ++i) {
    const int k = 1 << (i - 1);
    const double busy = 2 * alpha + beta * bytes / k;
    std::printf(
        "simulated: %s: a link is full from %.1f workers on (a shard's gradient takes %.3g ms, the step of a lone worker %.3g "
        "ms)\n",
        plot.series[i].name.c_str(), first[i] / busy, 1e3 * busy, 1e3 * first[i]);
  }
  std::printf(
      "simulated: one synchronous server: up to %d workers train over half of the time; a text claims it best up to 32 to 50 "
      "nodes\n",
      half);
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    ex::Line line{.metric = plot.series[i].name + ", " + ex::cell(plot.series[i].x.back()) + " workers: training",
                  .ours = alone / seconds[i],
                  .unit = "of the workers' time",
                  .threads = 1};
    line.add("simulated");
    results.add(line);
  }
  if (!o.svg.empty()) plot.write(o.svg + "_simulated.svg"), std::printf("drawn: %s_simulated.svg\n", o.svg.c_str());
}

/// Throws FlagError for what a run without a simulated network does not look at.
void check_unused_flags(const Options& o) {
  const Options usual;
  const bool simulates = o.simulate > 0;
  ex::check_unused("compute", !simulates && o.compute != usual.compute, "with --simulate 0");
  ex::check_unused("latency", !simulates && o.latency != usual.latency, "with --simulate 0");
  ex::check_unused("bandwidth", !simulates && o.bandwidth != usual.bandwidth, "with --simulate 0");
}

}  // namespace

int main(int argc, char** argv) {
  return sk::run<Options>(argc, argv, [&](const Options& o) {
    check_unused_flags(o);
    auto digits = sk::data::mnist_or_synthetic(o.data);
    const bool smaller = ex::take_samples(digits, o.samples);
    ex::check_at_most("batch", o.batch, static_cast<long>(digits.train.size()) / o.workers,  // else their epochs had no step
                      "samples of each worker", ex::more_samples(smaller), "fewer workers");
    std::vector<Row> rows;
    const auto end = [&] {
      ex::Results results("parameter_server", {.json = o.json});
      if (o.simulate > 0) simulate_the_slow_one(rows, o);
      say(rows, o, digits.source, smaller ? o.samples : 0, results);
      if (o.simulate > 0) simulate(o, results);
      return results.finish();
    };
    if (!o.processes) {
      ex::check_outputs({.json = o.json, .svg = o.svg});
      sk::spawn(o.workers + 2, [&](sk::ThreadComm& world) {
        auto found = measure(world, o, digits);
        if (world.rank() == 0) rows = std::move(found);
      });
      return end();
    }
    int status = 0;
    sk::MpiComm processes{argc, argv};
    processes.run([&](sk::MpiComm& world) {
      if (world.size() < o.workers + 1)
        throw sk::ArgumentError("--processes: mpirun has started " + std::to_string(world.size()) + " of the " +
                                std::to_string(o.workers + 2) + " processes that --workers " + std::to_string(o.workers) +
                                " and two servers are");
      if (world.rank() == 0) ex::check_outputs({.json = o.json, .svg = o.svg});
      rows = measure(world, o, digits);
      if (world.rank() == 0) status = end();
    });
    return status;
  });
}
