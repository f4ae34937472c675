// SPDX-License-Identifier: Apache-2.0
// How often should ranks synchronise? The tutorial's regression (1-80-80-40-1, SGD with rate 0.005, 80,000 samples in fixed
// shards, batches of 1000 a rank) with gradients averaged in every epoch, every second, fourth, tenth, never; models are
// averaged every 200 epochs. Time per 1000 epochs, epochs and time until the mean loss over all samples is below 0.05, over
// several seeds; and the same times over a slow network.
// ctest: --ranks 2 --samples 2000 --batch 100 --epochs 24 --target 4.6 --grain 4 --seeds 2 --slow-epochs 1 --svg how_often
// ctest on 2 ranks: --processes --samples 2000 --batch 100 --epochs 8 --target 4.6 --grain 4 --seeds 1
// ctest expects: all ranks have the same weights
// ctest: --epochs 1 --seeds 1 --slow-epochs 0
// ctest expects: in parentheses the tutorial's.*[(]1320[)]
// ctest: --epochs 1 --seeds 1 --slow-epochs 0 --grain 1
// ctest: --epochs 1 --seeds 1 --slow-epochs 0 --lr 0.004
// ctest expects: 1 seeds.this machine
// ctest: --processes --latency 5
// ctest expects: --latency does nothing with --processes
// ctest: --samples 2000
// ctest expects: --batch 1000 is more than the 500 samples of each rank
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <skein/comm/sim/delayed.hpp>
#include <skein/comm/thread/spawn.hpp>
#include <skein/core/run.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/mpi.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/relu.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/compose.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/average/model_average.hpp>
#include <skein/parallel/data/sync_every.hpp>
#include <skein/train/trainer.hpp>

#include "support/flag_checks.hpp"
#include "support/output_files.hpp"
#include "support/results.hpp"
namespace sk = skein;
namespace ex = experiments;
using namespace sk::parallel;

namespace {

struct FunctionFit : sk::nn::Sequential<sk::nn::Linear<80>, sk::nn::Relu, sk::nn::Linear<80>, sk::nn::Relu, sk::nn::Linear<40>,
                                        sk::nn::Relu, sk::nn::Linear<1>> {};
using Model = sk::Model<FunctionFit, sk::Shape<1>, sk::Cpu>;
using Threads = sk::Delayed<sk::ThreadComm>;

struct Options {
  int ranks = 4, epochs = 20'000, grain = 1000, seeds = 5, threads = 1, slow_epochs = 20;
  bool processes = false;
  long samples = 80'000, batch = 1000;
  double target = 0.05, latency = 50, bandwidth = 1;  // microseconds, Gbit a second
  float lr = 0.005f;
  std::string json, svg;

  void flags(sk::Flags& f) {
    f.about("How often should ranks synchronize");
    f("ranks", ranks, "threads of this process").within(1, 256);
    f("processes", processes, "ranks are the processes of mpirun");
    f("epochs", epochs, "at most").within(1, 10'000'000);
    f("target", target, "the mean loss over all samples to come below");
    f("grain", grain, "the loss is looked at every so many epochs, as the tutorial does").within(1, 10'000'000);
    f("seeds", seeds, "trainings of each row").within(1, 100);
    f("samples", samples, "of the regression").within(1, 100'000'000);
    f("batch", batch, "samples of a rank in a step").within(1, 1'000'000);
    f("lr", lr, "rate");
    f("threads", threads, "workers of a rank").within(1, 1024);
    f("slow-epochs", slow_epochs, "times 20 epochs of each row over the slow network; 0: none").within(0, 1'000'000);
    f("latency", latency, "of the slow network, in microseconds").within(0, 1e6);
    f("bandwidth", bandwidth, "of the slow network, in Gbit a second").within(1e-6, 1e6);
    f("svg", svg, "draws NAME_loss.svg and NAME_seconds.svg");
    f("json", json, "adds the figures to this file");
  }
};

/// SyncEveryEpochs<N> with the N of a row, so that one training is compiled for all of them; 0: never.
// [quote option]
struct SyncEveryChosen : OptionBase {
  static inline thread_local int epochs = 1;
  static constexpr OptionKind kind = OptionKind::when;
  template <class Inner> class Around : public ExchangesSometimes<Inner> {
    using Base = ExchangesSometimes<Inner>;
    int epochs_ = epochs;

   public:
    using Base::Base;
    void epoch_begins(std::int64_t epoch) {
      this->exchange_now(epochs_ > 0 && (epoch + 1) % epochs_ == 0);
      Base::epoch_begins(epoch);
    }
  };
};
// [end]

/// One training. What was not reached is NaN.
struct Outcome {
  std::vector<double> loss{};  // of each epoch, over all samples
  double seconds = 0, reached = NAN, reached_seconds = NAN, grain = NAN, grain_seconds = NAN, averaged = NAN;
  double per_thousand() const { return 1000 * seconds / static_cast<double>(loss.size()); }
};

/// Notes when the loss is below the target, and ends the training where it is at a multiple of the grain.
struct Watch {
  const Options* o;
  Outcome* out;
  void on_epoch_end(sk::train::EpochRecord& record, sk::train::FitControl& control) {
    out->loss.push_back(record.training.loss);
    out->seconds += record.seconds;
    if (!(record.training.loss < o->target)) return;
    const double epoch = static_cast<double>(out->loss.size());
    if (std::isnan(out->reached)) out->reached = epoch, out->reached_seconds = out->seconds;
    if (out->loss.size() % static_cast<std::size_t>(o->grain) != 0) return;
    out->grain = epoch, out->grain_seconds = out->seconds;
    control.stop("the loss is below the target");
  }
};

/// What a row of the table is: gradients every so many epochs, 0: never; the tutorial's figures.
struct Row {
  const char* name;
  int every;
  double tutorial_per_thousand, tutorial_loss, tutorial_epochs, tutorial_seconds;
  std::vector<Outcome> seeds{};
  double slow_per_thousand = NAN;

  std::vector<double> of(double Outcome::*member) const {
    std::vector<double> all;
    for (const Outcome& s : seeds) all.push_back(s.*member);
    return all;
  }
  std::vector<double> per_thousand() const {
    std::vector<double> all;
    for (const Outcome& s : seeds) all.push_back(s.per_thousand());
    return all;
  }
};
std::vector<Row> rows() {
  return {{"epoch", 1, 330, 0.039, 4000, 1320},
          {"2 epochs", 2, 183, 0.05, 6000, 1098},
          {"4 epochs", 4, 136, 0.04, 6000, 816},
          {"10 epochs", 10, 99, 0.025, 7000, 693},
          {"never", 0, 88, 0.03, 8000, 704}};
}

/// Gradients every so many epochs and models every 200, as the tutorial composes them.
template <class Comm> Outcome train(Comm& world, const Options& o, int every, int seed, int epochs) {
  const long first = sk::data::even_part(o.samples, world.size(), world.rank());
  const long last = sk::data::even_part(o.samples, world.size(), world.rank() + 1);
  std::vector<float> x, y;
  for (long i = first; i < last; ++i) {
    x.push_back(20 * sk::random_uniform(static_cast<std::uint64_t>(seed), 1, static_cast<std::uint64_t>(i)));
    y.push_back(std::sqrt(x.back()) * std::sin(3.14f * x.back() / 5));
  }
  const auto shard = sk::data::from_tensors(x, y);
  Model model{sk::Seed{static_cast<std::uint64_t>(seed)}};
  SyncEveryChosen::epochs = every;
  // [quote compose]
  const Compose policy{DataParallel{world, SyncEveryChosen{}}, ModelAverage{world, Period<200, Every::epoch>{}}};
  sk::Trainer trainer{model, sk::nn::Mse{}, sk::optim::Sgd{.lr = o.lr}, policy};
  // [end]
  Outcome out;
  out.loss.reserve(static_cast<std::size_t>(epochs));
  sk::FitOptions how{.epochs = epochs,
                     .progress = false,
                     .threads = o.threads,
                     .loader = {.batch_per_rank = o.batch, .partition = sk::data::Partition::local}};
  how.callbacks.add(Watch{&o, &out});
  world.barrier();
  trainer.fit(shard, how);
  double sums[2] = {0, static_cast<double>(last - first)}, weights = 0;
  const auto fit = trainer.predict(shard);
  for (std::size_t i = 0; i < y.size(); ++i) sums[0] += std::pow(static_cast<double>(fit(static_cast<long>(i), 0) - y[i]), 2);
  world.all_reduce(sk::DeviceSpan<double>(sums, 2), sk::Sum{});
  out.averaged = sums[0] / sums[1];
  for (const float w : model.parameters()) weights += static_cast<double>(w);
  if (!(world.all_reduce(weights, sk::Min{}) == world.all_reduce(weights, sk::Max{})))
    throw sk::Error("09_how_often_to_synchronize: the weights of the ranks differ");
  return out;
}

template <class Comm> void measure(std::vector<Row>& table, Comm& world, const Options& o) {
  for (int seed = 1; seed <= o.seeds; ++seed)
    for (std::size_t i = 0; i < table.size(); ++i) {
      Outcome out = train(world, o, table[i].every, seed, o.epochs);
      if (world.rank() == 0) table[i].seeds.push_back(std::move(out));
    }
}
/// How long epochs take over a slow network.
void measure_slowly(std::vector<Row>& table, Threads& slow, Options o) {
  o.target = 0;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const Outcome out = train(slow, o, table[i].every, 1, 20 * o.slow_epochs);  // 20: a multiple of all periods
    if (slow.rank() == 0) table[i].slow_per_thousand = out.per_thousand();
  }
}

/// Seconds of one core's work at the rate of its matrix product, over the cores that the ranks' threads have.
double floor_seconds(const Options& o, double epochs) {
  const double flops =
      static_cast<double>(3 * Model::flops - Model::program.layers()[0].flops) * static_cast<double>(o.samples) * epochs;
  static const double rate = bench::gemm_rate(true);
  return flops / (rate * std::min(o.ranks * o.threads, sk::available_cores()));
}

int say(const std::vector<Row>& table, const Options& o) {
  // The tutorial's figures are of its own settings: they stand beside ours only there.
  const bool same =
      o.samples == 80'000 && o.batch == 1000 && o.ranks == 4 && o.target == 0.05 && o.lr == Options{}.lr && o.grain == 1000;
  const auto theirs = [&](double figure) { return same ? " (" + ex::cell(figure) + ")" : std::string(); };
  std::printf("%ld samples on %d ranks that are %s, batch %ld a rank, rate %g, %d cores, %d seeds%s\n", o.samples, o.ranks,
              o.processes ? "processes" : "threads", o.batch, static_cast<double>(o.lr), sk::available_cores(), o.seeds,
              same ? "; in parentheses the tutorial's, on four cores" : "");
  ex::Table t{{"gradients every", "s / 1000 epochs", "epochs to " + ex::cell(o.target), "seconds",
               "at the grain of " + std::to_string(o.grain), "seconds", "loss then", "of the averaged model", "floor",
               "slowed: s / 1000 epochs", "seconds"}};
  ex::Results results("how_often", {.json = o.json});
  sk::draw::Plot losses{.title = "Mean loss over all samples", .x_label = "epoch", .y_label = "loss", .log_y = true};
  sk::draw::Plot times{
      .title = "Seconds to a loss of " + ex::cell(o.target), .x_label = "gradients synchronised every", .y_label = "seconds"};
  times.series = {{.name = "measured"}, {.name = "tutorial"}, {.name = "over the slow network"}};
  const Row* best = nullptr;
  for (const Row& r : table) {
    std::vector<double> after;
    for (const Outcome& s : r.seeds) after.push_back(s.loss.back());
    const auto reached = ex::mean_and_deviation(r.of(&Outcome::reached)),
               seconds = ex::mean_and_deviation(r.of(&Outcome::reached_seconds));
    const double slowed = r.slow_per_thousand * reached.mean / 1000;
    t.row({r.name, ex::cell(r.per_thousand()) + theirs(r.tutorial_per_thousand), ex::cell(r.of(&Outcome::reached)),
           ex::cell(r.of(&Outcome::reached_seconds)), ex::cell(r.of(&Outcome::grain)) + theirs(r.tutorial_epochs),
           ex::cell(r.of(&Outcome::grain_seconds)) + theirs(r.tutorial_seconds), ex::cell(after) + theirs(r.tutorial_loss),
           ex::cell(r.of(&Outcome::averaged)), ex::cell(floor_seconds(o, reached.mean)), ex::cell(r.slow_per_thousand),
           ex::cell(slowed)});
    const bool reached_by_all = std::isfinite(seconds.mean);
    if (reached_by_all && (!best || seconds.mean < ex::mean_and_deviation(best->of(&Outcome::reached_seconds)).mean)) best = &r;
    sk::draw::Series curve{.name = r.every > 0 ? std::string("every ") + r.name : r.name, .marks = false};
    const std::vector<double>& loss = r.seeds.front().loss;
    for (std::size_t e = 0; e < loss.size(); e += std::max<std::size_t>(1, loss.size() / 400))
      curve.x.push_back(static_cast<double>(e + 1)), curve.y.push_back(loss[e]);
    losses.series.push_back(std::move(curve));
    times.categories.push_back(r.name);
    times.series[0].y.push_back(seconds.mean), times.series[0].error.push_back(seconds.deviation);
    times.series[1].y.push_back(same ? r.tutorial_seconds : NAN);
    times.series[2].y.push_back(slowed);
  }
  t.print();
  for (const Row& r : table) {
    const auto reached = ex::mean_and_deviation(r.of(&Outcome::reached)),
               seconds = ex::mean_and_deviation(r.of(&Outcome::reached_seconds));
    const std::string how = std::string(r.every > 0 ? "gradients every " : "gradients ") + r.name;
    const std::string over = o.processes ? ", " + std::to_string(o.ranks) + " processes" : "";
    ex::Line line{.metric = how + ", to a loss of " + ex::cell(o.target) + over,
                  .ours = seconds.mean,
                  .unit = "s",
                  .floor = floor_seconds(o, reached.mean),
                  .threads = o.processes ? o.threads : o.ranks * o.threads};
    if (&r == best) line.must.of_floor = 1.4;
    line.accepted = std::isfinite(seconds.mean);
    line.add(line.accepted ? ex::cell(reached.mean) + " epochs, deviation " + ex::cell(seconds.deviation) + " s" +
                                 (same ? "; the tutorial's " + ex::cell(r.tutorial_seconds) + " s" : "")
                           : "not every seed reached it in " + std::to_string(o.epochs) + " epochs");
    if (!same) line.add(std::to_string(o.samples) + " samples, batch " + std::to_string(o.batch) + " a rank");
    results.add(line);
  }
  if (std::isfinite(table.back().slow_per_thousand))
    std::printf(
        "slowed: %g us a message, %g Gbit a second between the ranks, injected; seconds are those of the measured epochs\n",
        o.latency, o.bandwidth);
  if (!o.svg.empty()) {
    losses.write(o.svg + "_loss.svg");
    times.write(o.svg + "_seconds.svg");
    std::printf("drawn: %s_loss.svg, %s_seconds.svg\n", o.svg.c_str(), o.svg.c_str());
  }
  std::printf("all ranks have the same weights\n");
  return results.finish();
}

/// Throws FlagError for what the ranks of mpirun, or a run without the slow network, do not look at.
void check_unused_flags(const Options& o) {
  const Options usual;
  const std::string processes = "with --processes", where = o.processes ? processes : "with --slow-epochs 0";
  const bool slow = !o.processes && o.slow_epochs > 0;
  ex::check_unused("ranks", o.processes && o.ranks != usual.ranks, processes);
  ex::check_unused("slow-epochs", o.processes && o.slow_epochs > 0 && o.slow_epochs != usual.slow_epochs, processes);
  ex::check_unused("latency", !slow && o.latency != usual.latency, where);
  ex::check_unused("bandwidth", !slow && o.bandwidth != usual.bandwidth, where);
}

void check_batch(const Options& o) { ex::check_at_most("batch", o.batch, o.samples / o.ranks, "samples of each rank"); }

}  // namespace

int main(int argc, char** argv) {
  return sk::run<Options>(argc, argv, [&](Options o) {
    check_unused_flags(o);
    std::vector<Row> table = rows();
    if (o.processes) {
      int status = 0;
      sk::MpiComm world{argc, argv};
      o.ranks = world.size();
      check_batch(o);
      world.run([&](sk::MpiComm& w) {
        if (w.rank() == 0) ex::check_outputs({.json = o.json, .svg = o.svg});
        measure(table, w, o);
        if (w.rank() == 0) status = say(table, o);
      });
      return status;
    }
    check_batch(o);
    ex::check_outputs({.json = o.json, .svg = o.svg});
    sk::SlowNetwork free({});  // one type of ranks is compiled: what costs nothing costs a microsecond
    sk::spawn(o.ranks, [&](sk::ThreadComm& world) {
      Threads ranks(world, free);
      measure(table, ranks, o);
    });
    if (o.slow_epochs > 0) {
      const sk::plan::Level link{1e-6 * o.latency, 8e-9 / o.bandwidth};
      sk::SlowNetwork network({.near = link, .far = link});
      sk::spawn(o.ranks, [&](sk::ThreadComm& world) {
        Threads ranks(world, network);
        measure_slowly(table, ranks, o);
      });
    }
    return say(table, o);
  });
}
