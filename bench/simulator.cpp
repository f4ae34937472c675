// SPDX-License-Identifier: Apache-2.0
// How far is the simulator from what it simulates? A ladder, each rung with its error and the bound: counts of messages and
// bytes, closed forms up to 4,096 ranks, bubbles of pipelines, alpha and beta of half of the sizes for the other half, a whole
// step on two ranks, and dilated runs (computing is a sleep, messages are delayed) of 4 to 32 threads.
#include <skein/comm/algorithms/all_reduce.hpp>
#include <skein/comm/counted.hpp>
#include <skein/comm/measure.hpp>
#include <skein/comm/sim/delayed.hpp>
#include <skein/comm/sim/sim_comm.hpp>
#include <skein/parallel/data/algorithm.hpp>
#include <skein/parallel/simulate/simulated.hpp>
#include <skein/plan/schedule_check.hpp>

#include "support/apart.hpp"
#include "support/training.hpp"

namespace {
using namespace bench;
namespace plan = skein::plan;
using sk::parallel::DataParallel;
constexpr sk::optim::Sgd sgd{.lr = 0.01f};

/// In percent, against the bound; `what` says what was compared.
void rung(Report& report, const std::string& name, double error, double bound, const std::string& what, const char* unit = "%") {
  Line l{.metric = name, .ours = error, .unit = unit, .must = {bound}};
  l.add(what);
  report.add(l);
}
double off(double simulated, double real) { return 100 * std::fabs(simulated / real - 1); }

// ---- counts
/// What leaves each rank in three steps of a training by an algorithm of the policy: really, and simulated. Equal, or how far
/// apart.
double counts_of_training(int ranks) {
  const Samples<FunctionFit, nn::Mse> samples(ranks * 8L);
  std::vector<long> real(static_cast<std::size_t>(2 * ranks)), simulated = real;
  sk::spawn(ranks, [&](sk::ThreadComm& threads) {
    sk::Counted<sk::ThreadComm> world(threads);
    const auto policy = sk::parallel::DataParallel{world, sk::parallel::Algorithm<sk::parallel::Ring>{}};
    Training<FunctionFit, nn::Mse, std::remove_const_t<decltype(policy)>> training(samples, sgd, 1, policy, world.rank(), ranks);
    const sk::comm::Counts before = world.counts();
    for (int i = 0; i < 3; ++i) training.step();
    const sk::comm::Counts sent = world.counts() - before;
    real[static_cast<std::size_t>(2 * world.rank())] = sent.messages;
    real[static_cast<std::size_t>(2 * world.rank() + 1)] = sent.bytes;
  });
  sk::simulate(ranks, {.algorithm = plan::AllReduceAlgorithm::ring}, [&](sk::SimComm& world) {
    const auto policy = sk::parallel::Simulated{DataParallel{world}, world, {}};
    Training<FunctionFit, nn::Mse, std::remove_const_t<decltype(policy)>> training(samples, sgd, 1, policy, world.rank(), ranks);
    const sk::SimRank before = world.so_far();
    for (int i = 0; i < 3; ++i) training.step();
    simulated[static_cast<std::size_t>(2 * world.rank())] = world.so_far().messages - before.messages;
    simulated[static_cast<std::size_t>(2 * world.rank() + 1)] = world.so_far().bytes - before.bytes;
  });
  double worst = 0;
  for (std::size_t i = 0; i < real.size(); ++i)
    worst = larger(worst, real[i] > 0 ? off(static_cast<double>(simulated[i]), static_cast<double>(real[i])) : 100);
  return worst;
}

// ---- closed forms
double closed_forms(bool quick) {
  double worst = 0;
  const plan::Network network{{1e-6, 1e-10}, {2e-5, 1e-9}, 8, 5e-11};
  const long count = 1L << 20;
  const double bytes = 4.0 * static_cast<double>(count);
  for (int ranks = 2; ranks <= (quick ? 1024 : 4096); ranks *= 2) {
    const int columns = plan::torus_columns(network, ranks), node = std::min(8, ranks);
    worst = larger(worst, off(plan::played_seconds(plan::RingAllReduce{ranks, count}, network, 4),
                              plan::ring_seconds(network, ranks, bytes)));
    worst = larger(worst, off(plan::played_seconds(plan::RecursiveDoubling{ranks, count}, network, 4),
                              plan::recursive_doubling_seconds(network, ranks, bytes)));
    worst = larger(worst, off(plan::played_seconds(plan::TorusAllReduce{ranks, count, columns}, network, 4),
                              plan::torus_seconds(network, ranks, bytes, columns)));
    if (ranks >= node)
      worst = larger(worst, off(plan::played_seconds(plan::HierarchicalAllReduce{ranks, count, node}, network, 4),
                                plan::hierarchical_seconds(network, ranks, bytes)));
  }
  return worst;
}

// ---- pipelines: idle shares of the papers, where a forward takes 1 and a backward 2
double bubbles() {
  double worst = 0;
  for (int p = 2; p <= 8; ++p)
    for (int m = p; m <= 32; ++m) {
      const double formula = static_cast<double>(p - 1) / (m + p - 1);
      worst = larger(worst, off(plan::check(plan::gpipe(p, m)).bubble, formula));
      worst = larger(worst, off(plan::check(plan::one_f_one_b(p, m)).bubble, formula));
      worst = larger(worst, off(plan::check(plan::zero_bubble(p, m)).bubble, static_cast<double>(p - 1) / (3 * m + p - 1)));
      if (m % p == 0)
        worst = larger(worst, off(plan::check(plan::interleaved(p, 2, m)).bubble, static_cast<double>(p - 1) / (2 * m + p - 1)));
    }
  return worst;
}

// ---- alpha and beta
double other_half(bool quick, std::string& what) {
  std::vector<plan::MessageTime> all;
  sk::comm::MeasureOptions how;
  how.bytes.clear();
  for (double b = 8192; b <= 1 << 19; b *= 1.25) how.bytes.push_back(static_cast<long>(b) / 64 * 64);
  how.repeats = quick ? 200 : 1000;
  sk::spawn(2, [&](sk::ThreadComm& world) {
    if (sk::available_cores() > 1) bind_to(world.rank());
    const auto times = sk::comm::message_times(world, 0, 1, how);
    if (world.rank() == 0) all = times;
  });
  bind_to(-1);
  std::vector<plan::MessageTime> half, other;
  for (std::size_t i = 0; i < all.size(); ++i) (i % 2 ? other : half).push_back(all[i]);
  const plan::Level level = plan::fit_level(half).level;
  what = "messages of 8 to 512 KiB between two threads, " + number(1e6 * level.alpha) + " us + bytes / " +
         number(1e-9 / level.beta) + " GB/s; median of " + std::to_string(other.size()) + " sizes";
  return 100 * plan::median_error(level, other);
}

// ---- a whole step on two ranks
struct Measured {
  double every = 0, never = 0;  // least seconds of a step that exchanges, and of one that never does
  Interval ratio{};             // of the two, slice by slice
  plan::Level own{};            // the communicator's all-reduce
};
/// Steps of both kinds in turns, on two threads of a core each. `collective` > 0: every exchange takes so long.
template <bool Far, class Network, class Loss> Measured two_ranks(long batch, double collective, bool quick, long bucket_bytes) {
  Measured m;
  const Samples<Network, Loss> samples(batch);
  sk::SlowNetwork slow({{1e-9, 1e-15}, {1e-9, 1e-15}, 0, 0}, collective);
  std::vector<double> ratios, everies, nevers;
  sk::spawn(2, [&](sk::ThreadComm& world) {
    if (sk::available_cores() > 1) bind_to(world.rank());
    sk::Delayed<sk::ThreadComm> delayed(world, slow);
    const auto measure = [&](auto& comm) {
      using Policy = DataParallel<std::remove_reference_t<decltype(comm)>>;
      Training<Network, Loss, Policy> every(samples, sgd, 1, Policy{comm, {.bucket_bytes = bucket_bytes}}, world.rank(), 2);
      Training<Network, Loss> never(samples, sgd, 1, sk::parallel::SingleProcess{}, world.rank(), 2);
      const auto seconds = [&](auto& training, int n) {
        world.barrier();
        const double begin = clock_seconds(CLOCK_MONOTONIC);
        for (int i = 0; i < n; ++i) training.step();
        world.barrier();
        return (clock_seconds(CLOCK_MONOTONIC) - begin) / n;
      };
      seconds(every, 5), seconds(never, 5);
      for (int round = 0; round < (quick ? 60 : 250); ++round) {
        const double a = seconds(every, 3), b = seconds(never, 3), c = seconds(never, 3), d = seconds(every, 3);
        if (world.rank() != 0) continue;
        ratios.push_back((a + d) / (b + c));
        for (const double e : {a, d}) everies.push_back(e);
        for (const double n : {b, c}) nevers.push_back(n);
      }
    };
    if constexpr (Far) measure(delayed);
    else measure(world);
    const auto own = sk::comm::all_reduce_times(world, {.bytes = {4096, 16384, 65536, 262144}, .repeats = 300, .node = 0});
    if (world.rank() == 0) m.own = plan::fit_level(own).level;
  });
  bind_to(-1);
  m.ratio = bootstrap(ratios);
  m.every = minimum(everies);
  m.never = minimum(nevers);
  return m;
}
/// The same training by the simulator: computing takes what it took alone, an exchange between two ranks is one message each way.
template <class Network, class Loss>
double simulated_step(long batch, double never, const plan::Level& link, long bucket_bytes, bool depth_first) {
  const Samples<Network, Loss> samples(batch);
  const int steps = 5;
  double begin = 0;
  const sk::SimReport r = sk::simulate(
      2, {.network = {link, link, 0, 0}, .algorithm = plan::AllReduceAlgorithm::recursive_doubling}, [&](sk::SimComm& world) {
        plan::ComputeTimes times = plan::compute_times(never);
        if (depth_first) times = {times.forward + times.backward, 0, times.update};  // gradients are ready at the end
        const auto policy = sk::parallel::Simulated{DataParallel{world, {.bucket_bytes = bucket_bytes}}, world, times};
        Training<Network, Loss, std::remove_const_t<decltype(policy)>> training(samples, sgd, 1, policy, world.rank(), 2);
        if (world.rank() == 0) begin = world.now();
        for (int i = 0; i < steps; ++i) training.step();
      });
  return (r.seconds() - begin) / steps;
}
template <bool Far, class Network, class Loss>
void whole_step(Report& report, const std::string& name, long batch, double collective, long bucket_bytes) {
  const Measured m = two_ranks<Far, Network, Loss>(batch, collective, report.quick(), bucket_bytes);
  const plan::Level link = collective > 0 ? plan::Level{collective, 0} : m.own;
  const double simulated = simulated_step<Network, Loss>(batch, m.never, link, bucket_bytes, true);
  rung(report, name, off(simulated, m.every), 10,
       "simulated " + number(1e3 * simulated) + " ms, real " + number(1e3 * m.every) + " ms, without exchange " +
           number(1e3 * m.never) + " ms, all three the least; ratio of slices " + number(m.ratio.median) + " (" +
           number(m.ratio.low) + " to " + number(m.ratio.high) + ")");
}

// ---- dilated runs
/// Rounds of computing, each rank in its own time, and an all-reduce by messages.
template <class Comm> void by_messages(Comm& world, int rounds) {
  std::vector<float> x(4096, 1.0f);
  for (int i = 0; i < rounds; ++i) {
    world.compute(0.02 * (1 + world.rank() % 3));
    sk::comm::ring_all_reduce(world, x);
    sk::comm::recursive_doubling_all_reduce(world, x);
  }
}
/// Steps of a policy over real gradients; a step of every other rank takes twice as long.
template <class Comm> void by_policy(Comm& world, int steps) {
  static const Samples<FunctionFit, nn::Mse> samples(256);
  const double slow = world.rank() % 2 ? 2 : 1;
  const auto policy =
      sk::parallel::Simulated{DataParallel{world, {.bucket_bytes = 8192}}, world, {0.02 * slow, 0.04 * slow, 0.005}};
  Training<FunctionFit, nn::Mse, std::remove_const_t<decltype(policy)>> training(samples, sgd, 1, policy, world.rank(),
                                                                                 world.size());
  for (int i = 0; i < steps; ++i) training.step();
}
double dilated(int ranks, const plan::Network& links, bool policy, int rounds, std::string& what) {
  const auto run = [&](auto& world) {
    if (policy) by_policy(world, rounds);
    else by_messages(world, rounds);
  };
  const double simulated = sk::simulate(ranks, {.network = links}, [&](sk::SimComm& world) { run(world); }).seconds();
  double real = 1e30;
  for (int attempt = 0; attempt < 3; ++attempt) {
    sk::SlowNetwork network(links);
    const double begin = clock_seconds(CLOCK_MONOTONIC);
    sk::spawn(ranks, [&](sk::ThreadComm& threads) {
      sk::Delayed<sk::ThreadComm> world(threads, network);
      run(world);
    });
    real = std::min(real, clock_seconds(CLOCK_MONOTONIC) - begin);
  }
  what = "simulated " + number(simulated) + " s, real " + number(real) + " s, the least of three";
  return off(simulated, real);
}
}  // namespace

int main(int argc, char** argv) {
  Report report("simulator", options(argc, argv));
  const bool quick = report.quick();
  double counts = 0;
  for (const int ranks : {2, 3, 4, 8}) counts = larger(counts, counts_of_training(ranks));
  rung(report, "messages and bytes of a training on 2, 3, 4, 8 ranks", counts, 0,
       "each rank's, counted where they leave the policy, rings; the other algorithms are in the tests");
  rung(report, "all-reduces on 2 to 4,096 ranks", closed_forms(quick), 1e-6,
       quick ? "quick: to 1,024; plays of the tables against closed forms" : "plays of the tables against closed forms");
  rung(report, "idle share of pipelines", bubbles(), 1e-6,
       "GPipe, 1F1B, interleaved, zero bubble; 2 to 8 ranks, to 32 micro-batches; against the papers' formulas");
  std::string what;
  const double half = other_half(quick, what);
  rung(report, "alpha-beta of half of the sizes, for the other half", half, 10, what);
  whole_step<false, LeNet, nn::CrossEntropy>(report, "a step on 2 ranks, LeNet 2 x 64", 128, 0, 128 * 1024);
  whole_step<false, FunctionFit, nn::Mse>(report, "a step on 2 ranks, 1-80-80-40-1, 2 x 500", 1000, 0, 128 * 1024);
  whole_step<true, FunctionFit, nn::Mse>(report, "the same where an exchange takes 1 ms", 1000, 1e-3, 128 * 1024);
  const plan::Network links{{5e-3, 1e-7}, {8e-3, 2e-7}, 4, 0};
  for (const int ranks : {4, 8, 16, 32}) {
    const double messages = dilated(ranks, links, false, 2, what);
    rung(report, "a dilated run of " + std::to_string(ranks) + " threads, all-reduces by messages", messages, 8, what);
    const double policy = dilated(ranks, links, true, quick ? 4 : 10, what);
    rung(report, "a dilated run of " + std::to_string(ranks) + " threads, a training", policy, 8, what);
  }
  return report.finish();
}
