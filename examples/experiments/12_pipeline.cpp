// SPDX-License-Identifier: Apache-2.0
// Pipelines: an MLP 784-512-512-10 and LeNet in 2 and 4 stages, each schedule (also unpipelined) against one core that does it
// all, on the same batches in turns. Beside the measured step: what the table says for the measured lengths of its tasks. With
// --svg NAME, pictures of both on one axis, and the times that they are drawn of. Four stages on two ranks are interleaved; on
// four ranks of two cores they only show that they run.
//     mpirun --bind-to core -n 2 12_pipeline --svg pipeline
//     12_pipeline --threads-as-ranks 4 --stages 4 --network mlp --dilate 5 --rounds 3 --steps 1
// ctest: --threads-as-ranks 2 --network mlp --batch 64 --rounds 2 --samples 600 --svg pipeline
// ctest on 2 ranks: --network lenet --batch 32 --rounds 2 --samples 600 --epochs 1
// ctest expects: first 600 images.*every synchronous schedule has the losses of one core
// ctest: --threads-as-ranks 3
// ctest expects: 3 ranks: give a number of them that divides one of --stages
// ctest: --threads-as-ranks 2 --network mlp --epochs 3
// ctest: --threads-as-ranks 2 --stages 4 --epochs 3
// ctest expects: --epochs does nothing without LeNet in 2 stages
// ctest: --threads-as-ranks 4 --stages 4,2 --epochs 3
// ctest expects: --epochs does nothing on 4 ranks
// ctest: --threads-as-ranks 2 --samples 200
// ctest expects: --batch 256 is more than the 200 samples
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <skein/comm/sim/delayed.hpp>
#include <skein/mpi.hpp>
#include <skein/parallel.hpp>
#include <skein/skein.hpp>

#include "support/flag_checks.hpp"
#include "support/output_files.hpp"
#include "support/results.hpp"
#include "support/timelines.hpp"
namespace sk = skein;
namespace nn = skein::nn;
namespace plan = skein::plan;
namespace ex = experiments;
using Schedule = sk::parallel::PipelineSchedule;

namespace {

using Mlp = nn::Sequential<nn::Linear<512>, nn::Relu, nn::Linear<512>, nn::Relu, nn::Linear<10>>;
using LeNet =
    nn::Sequential<nn::Conv2d<6, sk::Kernel<5>, sk::Padding<2>>, nn::Relu, nn::MaxPool2d<2>, nn::Conv2d<16, sk::Kernel<5>>,
                   nn::Relu, nn::MaxPool2d<2>, nn::Flatten, nn::Linear<120>, nn::Relu, nn::Linear<84>, nn::Relu, nn::Linear<10>>;
// By hand where the cost sheet has fewer layers than stages: the second product behind its own activation.
using MlpFour = sk::parallel::Stages<nn::Sequential<nn::Linear<512>>, nn::Sequential<nn::Relu, nn::Linear<512>>,
                                     nn::Sequential<nn::Relu>, nn::Sequential<nn::Linear<10>>>;

struct Options {
  std::vector<std::string> networks{"mlp", "lenet"};
  std::vector<int> stages{2, 4};
  int threads_as_ranks = 0, micro_batches = 8, rounds = 40, steps = 5, epochs = 0;
  long batch = 256, samples = 12'000;
  double dilate = 0;  // milliseconds
  std::string data, json, svg;

  void flags(sk::Flags& f) {
    f.about("An MLP and LeNet as pipelines, every schedule");
    f("network", networks, "mlp, lenet").one_of({"mlp", "lenet"});
    f("stages", stages, "2, 4").within(2, 4);
    f("threads-as-ranks", threads_as_ranks, "so many threads of this process; 0: the processes of mpirun").within(0, 100'000);
    f("micro-batches", micro_batches, "of a batch").within(1, 100'000);
    f("batch", batch, "samples of a step").within(1, 1'000'000);
    f("samples", samples, "of the data set").within(1, 1'000'000'000);
    f("rounds", rounds, "each has a turn of every schedule").within(1, 100'000);
    f("steps", steps, "of a turn").within(1, 100'000);
    f("epochs", epochs, "of a training of LeNet in 2 stages afterwards").within(0, 100'000);
    f("dilate", dilate, "threads as ranks, more than cores: forward and each half of backward sleep so many milliseconds")
        .within(0, 1000);
    f("data", data, "folder of MNIST");
    f("svg", svg, "draws NAME_NETWORK_STAGES.svg, and writes its times beside it as .csv");
    f("json", json, "adds the figures to this file");
  }
};

struct Kind {
  Schedule schedule;
  const char* name;
};
constexpr Kind kinds[] = {{Schedule::unpipelined, "unpipelined"}, {Schedule::gpipe, "GPipe"},
                          {Schedule::one_f_one_b, "1F1B"},        {Schedule::interleaved, "interleaved"},
                          {Schedule::zero_bubble, "zero bubble"}, {Schedule::pipedream, "PipeDream"}};

/// The ranks, whatever communicator they have: a network's pipelines are compiled once.
struct World {
  int rank = 0, size = 1;
  std::function<void()> barrier{};
  std::function<std::vector<std::string>(const std::string&)> gather{};
  std::function<std::shared_ptr<sk::parallel::PipelineLink>()> link{};
};

/// What came of one schedule. Seconds are of a step, one of each round; events of this rank.
struct Outcome {
  Kind kind{};
  plan::Schedule table{};
  std::vector<double> seconds{};
  std::vector<plan::TimedStep> events{}, last{};  // of all steps that were timed; of the last one
  double slots = 0, bytes = 0;
};
struct Outcomes {
  std::string network{}, source{}, learnt{};
  int stages = 0;
  std::vector<double> one_core{};
  std::vector<Outcome> of{};
  bool right = true;
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

template <class Pipeline, class Input> struct Trial {
  using Model = sk::parallel::StagedModel<Pipeline, Input>;
  Pipeline pipeline;
  Model model;
  sk::parallel::PipelineTrainStep<Model, nn::CrossEntropy, sk::optim::Sgd> train_step;
  Trial(World& world, const sk::parallel::PipelineOptions& options, const sk::optim::Sgd& sgd)
      : pipeline(world.link(), options), model(pipeline, sk::Seed{3}), train_step(model, {}, sgd, pipeline) {}
};

template <class Pipeline, class Input> Outcomes measure(World& world, const Options& o) {
  Outcomes out;
  out.stages = Pipeline::stage_count;
  auto digits = sk::data::mnist_or_synthetic(o.data);
  const bool smaller = o.samples < digits.train.size();
  digits.train = digits.train.take(o.samples);
  ex::check_at_most("batch", o.batch, digits.train.size(), "samples", ex::more_samples(smaller));
  out.source = digits.source + ex::first_images(smaller ? o.samples : 0);
  sk::data::Loader<float> loader(digits.train, {.batch = o.batch, .seed = sk::Seed{1}});
  const auto epoch = loader.epoch(0);
  const sk::data::Batch<float> batch = *epoch.begin();
  const sk::optim::Sgd sgd{.lr = 0.02f, .momentum = 0.9f};

  using Whole = sk::Model<typename Pipeline::network, Input, sk::Cpu>;
  Whole whole{sk::Seed{3}};
  sk::train::TrainStep<Whole, nn::CrossEntropy, sk::optim::Sgd> one(whole, {}, sgd, {});
  one.reserve({.capacity = o.batch, .threads = 1});
  std::vector<std::unique_ptr<Trial<Pipeline, Input>>> trials;
  for (const Kind& k : kinds) {
    if ((world.size == out.stages) == (k.schedule == Schedule::interleaved)) continue;
    sk::parallel::PipelineOptions options{.schedule = k.schedule, .micro_batches = o.micro_batches};
    const double length = 1e-3 * o.dilate;
    if (length > 0) options.lengths.stages.assign(static_cast<std::size_t>(out.stages), {length, length, length});
    trials.push_back(std::make_unique<Trial<Pipeline, Input>>(world, options, sgd));
    trials.back()->train_step.reserve({.capacity = o.batch, .threads = 1});
    out.of.push_back({.kind = k, .table = trials.back()->pipeline.schedule(o.micro_batches)});
  }
  // Right before fast: the losses of five steps.
  std::vector<double> losses;
  for (int i = 0; i < 5; ++i) losses.push_back(one.step(batch).mean());
  for (std::size_t t = 0; t < trials.size(); ++t)
    for (int i = 0; i < 5; ++i) {
      const double loss = trials[t]->train_step.step(batch).mean(), expected = losses[static_cast<std::size_t>(i)];
      if (out.of[t].kind.schedule == Schedule::pipedream || std::abs(loss - expected) <= 1e-4 * std::abs(expected)) continue;
      out.right = false;
      std::printf("%s: step %d has the loss %.6f, one core %.6f\n", out.of[t].kind.name, i, loss, expected);
    }
  for (int round = 0; round < o.rounds; ++round) {
    world.barrier();
    const double begin = now();
    if (world.rank == 0)
      for (int i = 0; i < o.steps; ++i) {
        one.step(batch);
        if (o.dilate > 0)
          std::this_thread::sleep_for(std::chrono::duration<double>(3e-3 * o.dilate * out.stages * o.micro_batches));
      }
    out.one_core.push_back((now() - begin) / o.steps);
    for (std::size_t t = 0; t < trials.size(); ++t) {
      Outcome& of = out.of[t];
      world.barrier();
      const double from = now();
      for (int i = 0; i < o.steps; ++i) {
        trials[t]->train_step.step(batch);
        of.last.clear();
        for (const auto& e : trials[t]->train_step.policy_state().trace())
          of.last.push_back({e.step, world.rank, e.begin, e.end});
        of.events.insert(of.events.end(), of.last.begin(), of.last.end());
      }
      world.barrier();
      of.seconds.push_back((now() - from) / o.steps);
    }
  }
  for (std::size_t t = 0; t < trials.size(); ++t)
    out.of[t].slots = trials[t]->train_step.slots(),
    out.of[t].bytes = static_cast<double>(trials[t]->train_step.activation_bytes());
  if constexpr (Pipeline::stage_count == 2 && Input::rank == 3) {
    for (std::size_t t = 0; o.epochs > 0 && t < trials.size(); ++t) {  // LeNet, and it learns
      const Kind kind = out.of[t].kind;
      if (kind.schedule != Schedule::one_f_one_b && kind.schedule != Schedule::interleaved &&
          kind.schedule != Schedule::pipedream)
        continue;
      sk::optim::Sgd rate = sgd;  // PipeDream steps after each micro-batch
      if (kind.schedule == Schedule::pipedream) rate.lr /= static_cast<float>(o.micro_batches);
      const Pipeline pipeline{world.link(), {.schedule = kind.schedule, .micro_batches = o.micro_batches}};
      auto model = pipeline.template model<Input>(sk::Seed{5});
      sk::Trainer trainer{model, nn::CrossEntropy{}, rate, pipeline};
      const sk::History h = trainer.fit(digits.train, {.epochs = o.epochs, .batch = 64, .progress = false, .threads = 1});
      char line[160];
      std::snprintf(line, sizeof line, "%d epochs of %s: training loss %.4f, test accuracy %.2f %%, %.1f s\n", o.epochs,
                    kind.name, h.back().training.loss, 100 * trainer.evaluate(digits.test).accuracy, h.seconds());
      out.learnt += line;
    }
  }
  return out;
}

/// All ranks' steps.
std::vector<plan::TimedStep> gathered(World& world, const std::vector<plan::TimedStep>& mine) {
  std::vector<plan::TimedStep> all;
  for (const std::string& bytes :
       world.gather(std::string(reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(plan::TimedStep)))) {
    const std::size_t n = all.size();
    all.resize(n + bytes.size() / sizeof(plan::TimedStep));
    if (!bytes.empty()) std::memcpy(static_cast<void*>(all.data() + n), bytes.data(), bytes.size());
  }
  return all;
}
double greatest(World& world, double mine) {
  for (const std::string& other : world.gather(std::to_string(mine))) mine = std::max(mine, std::atof(other.c_str()));
  return mine;
}

/// The median length of each task of each stage.
plan::StageLengths medians(const std::vector<plan::TimedStep>& events, int stages) {
  plan::StageLengths lengths;
  for (int s = 0; s < stages; ++s) {
    std::vector<double> of[5];
    for (const plan::TimedStep& e : events)
      if (e.step.stage == s) of[static_cast<int>(e.step.task)].push_back(e.end - e.begin);
    const auto median = [&](plan::Task t) {
      return of[static_cast<int>(t)].empty() ? 0 : bench::median(of[static_cast<int>(t)]);
    };
    const bool halves = !of[static_cast<int>(plan::Task::input_gradient)].empty();
    lengths.stages.push_back({.forward = median(plan::Task::forward),
                              .input_gradient = median(halves ? plan::Task::input_gradient : plan::Task::backward),
                              .weight_gradient = halves ? median(plan::Task::weight_gradient) : 0,
                              .update = median(plan::Task::update)});
  }
  return lengths;
}

void report(World& world, const Options& o, Outcomes& out, ex::Results* results) {
  ex::Table table{{"schedule", "ms a step", "least", "times one core", "the table's ms", "over the table", "bubble of the table",
                   "measured", "kept", "MB kept"}};
  std::vector<plan::Timeline> pictures;
  const double serial = bench::median(out.one_core);
  if (world.rank == 0)
    std::printf("%s, %d stages on %d ranks, batch %ld in %d micro-batches, %s; one core: %.3f ms a step, least %.3f\n",
                out.network.c_str(), out.stages, world.size, o.batch, o.micro_batches, out.source.c_str(), 1e3 * serial,
                1e3 * bench::minimum(out.one_core));
  const bool goals = o.dilate > 0 || (sk::available_cores() >= world.size && out.network == "mlp" && out.stages == 2);
  for (Outcome& t : out.of) {
    const std::vector<plan::TimedStep> all = gathered(world, t.events), last = gathered(world, t.last);
    const double slots = greatest(world, t.slots), bytes = greatest(world, t.bytes);
    if (world.rank != 0) continue;
    const std::string name = t.kind.name;
    plan::Timeline says = plan::timeline_of(t.table, medians(all, out.stages)),
                   was = plan::from_zero({name + ", measured", t.table.ranks, out.stages, last});
    says.title = name + ", as the table says with the measured lengths";
    std::vector<double> ratio, against;
    for (std::size_t i = 0; i < t.seconds.size(); ++i)
      ratio.push_back(out.one_core[i] / t.seconds[i]), against.push_back(t.seconds[i] / says.length());
    const ex::Interval speedup = bench::bootstrap(ratio), over = bench::bootstrap(against);
    const double ms = 1e3 * bench::median(t.seconds);
    table.row({name, ex::cell(ms), ex::cell(1e3 * bench::minimum(t.seconds)), ex::cell(speedup.median, speedup.low, speedup.high),
               ex::cell(1e3 * says.length()), ex::cell(over.median, over.low, over.high), ex::cell(100 * says.bubble()) + " %",
               ex::cell(100 * was.bubble()) + " %", ex::cell(slots), ex::cell(1e-6 * bytes)});
    const std::string what =
        out.network + ", " + std::to_string(out.stages) + " stages, " + name + (o.dilate > 0 ? ", dilated" : "");
    ex::Line line{.metric = what, .ours = ms, .peer = 1e3 * serial, .peer_name = "one core", .ratio = speedup, .threads = 1};
    if (goals && o.dilate <= 0 && t.kind.schedule == Schedule::one_f_one_b) line.must = {.bound = 1.55, .at_least = true};
    line.add("the ratio is the speed-up");
    results->add(line);
    ex::Line beside{.metric = what + ", over its table",
                    .ours = ms,
                    .peer = 1e3 * says.length(),
                    .peer_name = "table",
                    .ratio = over,
                    .threads = 1};
    if (goals) beside.must = {.bound = 1.08};
    results->add(beside);
    pictures.push_back(says);
    pictures.push_back(was);
  }
  if (world.rank != 0) return;
  table.print();
  for (std::size_t i = 1; i < pictures.size(); i += 2)
    if (pictures.size() == 2 || pictures[i].title.starts_with("1F1B"))
      std::printf("%s", plan::schedule_text(pictures[i], pictures[i].length() / 40).c_str());
  std::printf("%s", out.learnt.c_str());
  if (o.svg.empty()) return;
  for (plan::Timeline& t : pictures)
    for (plan::TimedStep& s : t.steps) s.begin *= 1e3, s.end *= 1e3;
  const std::string file = o.svg + "_" + out.network + "_" + std::to_string(out.stages);
  sk::draw::write_svg(file + ".svg", plan::schedule_svg(pictures, {.unit = "ms"}));
  ex::write_timelines(file + ".csv", pictures);
  std::printf("drawn: %s.svg, its times in %s.csv\n", file.c_str(), file.c_str());
}

Outcomes measure(World& world, const Options& o, const std::string& network, int stages) {
  using sk::parallel::balanced_stages, sk::parallel::Pipeline;
  using Image = sk::Shape<28, 28, 1>;
  if (network == "mlp" && stages == 2)
    return measure<Pipeline<balanced_stages<Mlp, sk::Shape<784>, 2>>, sk::Shape<784>>(world, o);
  if (network == "mlp") return measure<Pipeline<MlpFour>, sk::Shape<784>>(world, o);
  if (stages == 2) return measure<Pipeline<balanced_stages<LeNet, Image, 2>>, Image>(world, o);
  return measure<Pipeline<balanced_stages<LeNet, Image, 4>>, Image>(world, o);
}

int run(World& world, const Options& o) {
  if (world.rank == 0) ex::check_outputs({.json = o.json, .svg = o.svg});
  std::unique_ptr<ex::Results> results;
  if (world.rank == 0) results = std::make_unique<ex::Results>("pipeline", bench::Options{.json = o.json});
  bool right = true;
  if (std::none_of(o.stages.begin(), o.stages.end(), [&](int stages) { return stages % world.size == 0; }))
    throw sk::ArgumentError(std::to_string(world.size) + " ranks: give a number of them that divides one of --stages");
  ex::check_unused("epochs", o.epochs > 0 && 2 % world.size != 0,
                   "on " + std::to_string(world.size) + " ranks, which LeNet in 2 stages has no place for");
  for (const std::string& network : o.networks)
    for (const int stages : o.stages) {
      if (stages % world.size != 0) {
        if (world.rank == 0) std::printf("%s in %d stages: not over %d ranks\n", network.c_str(), stages, world.size);
        continue;
      }
      Outcomes out = measure(world, o, network, stages);
      out.network = network;
      report(world, o, out, results.get());
      right = right && out.right;
    }
  if (world.rank != 0) return 0;
  if (right) std::printf("every synchronous schedule has the losses of one core\n");
  return results->finish(right);
}

template <class Comm> World of(Comm& comm) {
  return {comm.rank(), comm.size(), [&] { comm.barrier(); }, [&](const std::string& mine) { return comm.all_gather(mine); },
          [&] { return std::shared_ptr<sk::parallel::PipelineLink>(sk::parallel::pipeline_link(comm)); }};
}

}  // namespace

int main(int argc, char** argv) {
  return sk::run<Options>(argc, argv, [&](const Options& o) {
    for (const int s : o.stages)
      if (s == 3) throw sk::FlagError("--stages takes 2, 4 or both");
    ex::check_distinct("network", o.networks);
    ex::check_distinct("stages", o.stages);
    const auto has = [](const auto& values, const auto& value) { return std::count(values.begin(), values.end(), value) > 0; };
    ex::check_unused("epochs", o.epochs > 0 && !(has(o.networks, "lenet") && has(o.stages, 2)), "without LeNet in 2 stages");
    int status = 0;
    if (o.threads_as_ranks > 0) {
      sk::SlowNetwork network({.near = {1e-4, 1e-10}, .far = {1e-4, 1e-10}, .node = 1});  // of dilated runs
      sk::spawn(o.threads_as_ranks, [&](sk::ThreadComm& comm) {
        sk::Delayed<sk::ThreadComm> delayed{comm, network};
        World world = of(comm);
        if (o.dilate > 0) world.link = of(delayed).link;
        if (const int s = run(world, o); s != 0) status = s;
      });
    } else {
      sk::MpiComm world{argc, argv};
      world.run([&](sk::MpiComm& comm) {
        World all = of(comm);
        status = run(all, o);
      });
    }
    return status;
  });
}
