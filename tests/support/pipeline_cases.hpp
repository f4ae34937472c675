// SPDX-License-Identifier: Apache-2.0
// What a Pipeline must do on any communicator of the host: written once, run over threads and over MPI. The serial run is one
// Model of the whole network whose gradients are accumulated over the same micro-batches.
#pragma once
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include <skein/comm/self/self_comm.hpp>
#include <skein/nn/batch_norm.hpp>
#include <skein/nn/dropout.hpp>
#include <skein/nn/fused/linear_activation.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/relu.hpp>
#include <skein/nn/residual.hpp>
#include <skein/nn/tanh.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/pipeline/pipeline.hpp>
#include <skein/train/trainer.hpp>

#include "points.hpp"
#include "rank_check.hpp"
#include "seed_of_start.hpp"
#include "temporary_folder.hpp"

namespace pipeline_cases {

namespace sk = skein;
namespace nn = skein::nn;
namespace plan = skein::plan;
using sk::parallel::PipelineOptions, sk::parallel::PipelineSchedule;

// Everything that could go wrong between stages: random numbers by layer, statistics of a micro-batch, a layer whose backward has
// no halves, a stage that begins with what is not Linear, a skip connection.
using S0 = nn::Sequential<nn::Linear<16>, nn::Relu, nn::Dropout<>>;
using S1 = nn::Sequential<nn::Linear<16>, nn::BatchNorm<>>;
using S2 = nn::Sequential<nn::Tanh, nn::Residual<nn::Sequential<nn::Linear<16>, nn::Relu>>, nn::Relu>;
using S3 = nn::Linear<3>;
using Pipeline = sk::parallel::Pipeline<S0, S1, S2, S3>;
using Input = sk::Shape<12>;
using Whole = sk::Model<Pipeline::network, Input, sk::Cpu>;
using Staged = sk::parallel::StagedModel<Pipeline, Input>;
using Optimizer = sk::optim::Sgd;
using TrainStep = sk::parallel::PipelineTrainStep<Staged, nn::CrossEntropy, Optimizer>;
inline const Optimizer optimizer{.lr = 0.05f, .momentum = 0.9f, .weight_decay = 1e-3f};

using First = nn::Sequential<nn::Linear<24>, nn::Relu>;
using Second = nn::Sequential<nn::Linear<3>>;

struct Points : support::Points {
  Points() : support::Points(120, {1, {12}}) {}
  sk::data::Batch<float> batch(long first, long count) const {
    sk::data::Batch<float> b;
    b.x = x.data() + first * 12;
    b.pitch = 12;
    b.labels = labels.data() + first;
    b.count = b.global_count = count;
    b.first = first;
    return b;
  }
};

struct Result {
  std::vector<float> parameters, buffers;
  std::vector<double> losses;
};

/// Four steps of up to `batch` samples each; micro-batches of `micro`.
inline Result serial(long batch, long micro) {
  const Points points;
  Whole model{sk::Seed{5}};
  sk::train::TrainStep<Whole, nn::CrossEntropy, Optimizer> train_step(model, {}, optimizer, {});
  train_step.reserve({.capacity = micro, .execution = sk::Execution::layer_wise, .threads = 1});
  Result r;
  for (int step = 0; step < 4; ++step) {
    const long first = step * 27, end = first + batch;
    for (long at = first; at < end; at += micro) {
      const auto sums =
          train_step.step(points.batch(at, std::min(micro, end - at)),
                          {.accumulate = at > first, .update = at + micro >= end, .key = 77u + static_cast<unsigned>(step)});
      if (at + micro >= end) r.losses.push_back(sums.mean());
    }
  }
  r.parameters.assign(model.parameters().begin(), model.parameters().end());
  r.buffers.assign(model.buffers().begin(), model.buffers().end());
  return r;
}

template <class Then> void pipelined(const Pipeline& pipeline, long batch, int threads, Then&& then) {
  const Points points;
  Staged model = pipeline.model<Input>(sk::Seed{5});
  TrainStep train_step(model, {}, optimizer, pipeline);
  train_step.reserve({.capacity = batch, .threads = threads});
  std::vector<double> losses;
  for (int step = 0; step < 4; ++step) {
    const int parts = train_step.policy_state().batch_parts(), part = train_step.policy_state().batch_part();
    const long first = batch * part / parts, end = batch * (part + 1) / parts;
    auto b = points.batch(step * 27 + first, end - first);
    b.global_count = batch;
    losses.push_back(train_step.step(b, sk::optim::StepOptions{.key = 77u + static_cast<unsigned>(step)}).mean());
  }
  then(model, train_step, losses);
}

inline void require_stages(Staged& model, const Result& expected, double tolerance = 0) {
  for (int s = 0; s < Pipeline::stage_count; ++s) {
    const auto mine = model.parameters(s);
    if (mine.size == 0) continue;
    const float* whole = expected.parameters.data() + Staged::range(s).begin;
    for (std::size_t i = 0; i < mine.size; ++i)
      RANK_CHECK(tolerance == 0 ? mine[i] == whole[i] : std::abs(mine[i] - whole[i]) <= tolerance);
    if (s == 1)
      RANK_CHECK(tolerance > 0 || std::equal(model.buffers(s).begin(), model.buffers(s).end(), expected.buffers.begin()));
  }
}

/// Synchronous schedules give the bits of the serial run: even and ragged micro-batches, fewer than stages, one.
template <class Comm> void agrees_with_serial(Comm& world, std::initializer_list<PipelineSchedule> schedules) {
  for (const auto& [batch, micros] : {std::pair{36L, 4}, std::pair{37L, 6}, std::pair{27L, 2}, std::pair{13L, 1}}) {
    const Result expected = serial(batch, (batch + micros - 1) / micros);
    for (PipelineSchedule schedule : schedules) {
      const Pipeline pipeline{world, {.schedule = schedule, .micro_batches = micros}};
      pipelined(pipeline, batch, 1, [&](Staged& model, TrainStep&, const std::vector<double>& losses) {
        require_stages(model, expected);
        RANK_CHECK(losses == expected.losses);
      });
    }
  }
  const Result expected = serial(36, 9);  // the workers' gradients are sums of another order
  pipelined(Pipeline{world, {.schedule = *schedules.begin()}}, 36, 2,
            [&](Staged& model, TrainStep&, const std::vector<double>&) { require_stages(model, expected, 1e-5); });
}

/// A stage's arenas are those of its own layers; together they are the whole.
template <class Comm> void holds_its_own_stages(Comm& world) {
  const Pipeline pipeline{world, {.schedule = PipelineSchedule::interleaved}};
  Staged model = pipeline.model<Input>(sk::Seed{5});
  Whole whole{sk::Seed{5}};
  const std::size_t all = 2 * whole.parameters().size * sizeof(float);
  std::size_t held = 0;
  for (int s = 0; s < Pipeline::stage_count; ++s) {
    held += model.parameters(s).size;
    RANK_CHECK(
        std::equal(model.parameters(s).begin(), model.parameters(s).end(), whole.parameters().begin() + Staged::range(s).begin));
  }
  RANK_CHECK(model.bytes() == 2 * held * sizeof(float));
  RANK_CHECK(world.size() == 1 ? model.bytes() == all : model.bytes() < all);
  double sum[1] = {static_cast<double>(held)};
  world.all_reduce(sk::DeviceSpan<double>(sum, 1));
  RANK_CHECK(sum[0] == static_cast<double>(whole.parameters().size));
}

/// What ran is the table; another order of entries is another trace, with the same sums in another order, or is refused.
template <class Comm> void follows_the_table(Comm& world) {
  const auto trace_is_the_table = [&](const Pipeline& pipeline, int micros, const Result& expected, double tolerance) {
    pipelined(pipeline, 36, 1, [&](Staged& model, TrainStep& train_step, const std::vector<double>&) {
      std::vector<plan::Step> ran;
      for (const auto& e : train_step.policy_state().trace()) {
        RANK_CHECK(e.end >= e.begin);
        ran.push_back(e.step);
      }
      RANK_CHECK(ran == pipeline.schedule(micros).order[static_cast<std::size_t>(world.rank())]);
      require_stages(model, expected, tolerance);
    });
  };
  const Result expected = serial(36, 9);
  const auto backwards = [](int ranks, int, int micros) {  // GPipe whose gradients come in the other order
    plan::Schedule s = plan::gpipe(ranks, micros);
    for (auto& order : s.order) std::reverse(order.begin() + micros, order.begin() + 2 * micros);
    return s;
  };
  trace_is_the_table(Pipeline{world, {.schedule = PipelineSchedule::gpipe}}, 4, expected, 0);
  trace_is_the_table(Pipeline{world, {.table = backwards}}, 4, expected, 1e-4);
  const auto refused = [&](auto&& spoil) {
    const Pipeline pipeline{world, {.table = [&](int ranks, int, int micros) {
                              plan::Schedule s = plan::one_f_one_b(ranks, micros);
                              spoil(s);
                              return s;
                            }}};
    try {
      pipelined(pipeline, 36, 1, [](auto&&...) {});
    } catch (const sk::ArgumentError& e) { return std::string(e.what()); }
    return std::string();
  };
  RANK_CHECK(refused([](plan::Schedule& s) { std::swap(s.order[1].front(), s.order[1].back()); }).find("deadlock") !=
             std::string::npos);
  RANK_CHECK(refused([](plan::Schedule& s) { s.order[2].pop_back(); }).find("missing") != std::string::npos);
  RANK_CHECK(refused([](plan::Schedule& s) { s.micros = 3; }).find("micro") != std::string::npos);
}

/// Ranks that were given different tables are told so: one that updates after each micro-batch would train something else.
template <class Comm> void other_tables_are_refused(Comm& world) {
  const auto told = [&](const PipelineOptions& options) {
    try {
      pipelined(Pipeline{world, options}, 36, 1, [](auto&&...) {});
    } catch (const sk::CommError& e) { return std::string(e.what()); }
    return std::string("nothing");
  };
  const bool odd = world.rank() == 1;
  const auto table = [&](int ranks, int, int micros) {
    return odd ? plan::pipedream(ranks, micros) : plan::gpipe(ranks, micros);
  };
  RANK_CHECK(told({.table = table}).find(".synchronous` of .table is true on ranks 0, 2, 3, false on rank 1") !=
             std::string::npos);
}
template <class Comm> void a_table_of_one_rank_is_refused(Comm& world) {
  try {
    PipelineOptions options;
    if (world.rank() == 1) options.table = [](int ranks, int, int micros) { return plan::pipedream(ranks, micros); };
    pipelined(Pipeline{world, options}, 36, 1, [](auto&&...) {});
    RANK_CHECK(!"a table of one rank is refused");
  } catch (const sk::CommError& e) {
    RANK_CHECK(std::string(e.what()).find("`.table` of Pipeline is not given on") != std::string::npos);
  }
}

/// The bits of a serial run in which each micro-batch's gradient is made with the weights that the first stage had at its
/// forward.
template <class Comm> void pipedream_is_delayed(Comm& world) {
  const int micros = 7;
  const long size = 5;
  const Points points;
  Whole model{sk::Seed{5}};
  sk::Executor<Whole, nn::CrossEntropy> executor(model, {},
                                                 {.capacity = size, .execution = sk::Execution::layer_wise, .threads = 1});
  sk::optim::BoundOptimizer<Optimizer, float, sk::Cpu> bound(optimizer, Whole::program);
  std::int64_t steps = 0;
  const plan::Schedule table = plan::pipedream(Pipeline::stage_count, micros);
  for (int step = 0; step < 4; ++step) {
    std::vector<std::vector<float>> versions{{model.parameters().begin(), model.parameters().end()}};
    // Forwards and backwards of the serial run come in the order of the first stage; the statistics of normalisation do too.
    for (int m = 0; m < micros; ++m) {
      std::size_t read = 0;
      for (const plan::Step& s : table.order[0]) {
        if (s.task == plan::Task::update) ++read;
        if (s == plan::Step{plan::Task::forward, 0, m}) break;
      }
      const auto put = [&](const auto& values) {
        const auto weights = model.modify();
        std::copy(values.begin(), values.end(), weights.data());
      };
      put(versions[read]);
      executor.forward_backward(points.batch(step * 27 + m * size, size),
                                {.scale = 1.0 / size, .key = 77u + static_cast<unsigned>(step)});
      put(versions.back());
      sk::optim::StepCall<float> call;
      call.step = ++steps;
      call.lr = 0.05f;
      const float* gradients = model.gradients().data;
      call.gradients = &gradients;
      const auto weights = model.modify();
      bound.update(weights.data(), call, 0, Whole::sizes.stored);
      versions.emplace_back(model.parameters().begin(), model.parameters().end());
    }
  }
  Result expected;
  expected.parameters.assign(model.parameters().begin(), model.parameters().end());
  expected.buffers.assign(model.buffers().begin(), model.buffers().end());
  std::vector<float> vertical;
  for (const bool sync : {true, false}) {
    const Pipeline pipeline{world, {.schedule = PipelineSchedule::pipedream, .micro_batches = micros, .vertical_sync = sync}};
    pipelined(pipeline, micros * size, 1, [&](Staged& staged, TrainStep& train_step, const std::vector<double>&) {
      RANK_CHECK(train_step.steps() == 4 * micros);
      std::vector<float> all;
      for (int s = 0; s < Pipeline::stage_count; ++s)
        all.insert(all.end(), staged.parameters(s).begin(), staged.parameters(s).end());
      if (sync) {
        require_stages(staged, expected);
        vertical = all;
      } else if (staged.holds(1)) {
        RANK_CHECK(all != vertical);  // the later stages' forwards have seen newer weights
      }
      const auto& program = train_step.program(micros);
      for (int s = 0; s < Pipeline::stage_count; ++s)
        RANK_CHECK(!staged.holds(s) || program.versions[static_cast<std::size_t>(s)] == (sync ? 3 : 3 - s));
    });
  }
}

/// Pipelines beside each other, each with half of the batch, agree with one (whose normalisation sees other micro-batches: the
/// weights before it only, and not to the bit).
template <class Comm> void replicates(Comm& world) {
  const int replicas = world.size() / Pipeline::stage_count;
  for (PipelineSchedule schedule : {PipelineSchedule::one_f_one_b, PipelineSchedule::zero_bubble}) {
    const Pipeline pipeline{world, {.schedule = schedule, .micro_batches = 3, .replicas = replicas}};
    const Result expected = serial(36, 36 / (3 * replicas));
    pipelined(pipeline, 36, 1, [&](Staged& model, TrainStep&, const std::vector<double>& losses) {
      require_stages(model, expected, 2e-6);
      for (std::size_t i = 0; i < losses.size(); ++i) RANK_CHECK(losses[i] == Approx(expected.losses[i]).epsilon(1e-5));
    });
  }
}

/// Pipelines beside each other whose ranks have other numbers of threads find the same norms, and so keep the same weights.
template <class Comm> void replicas_of_other_threads_agree(Comm& world, const auto& o, double clip) {
  const Points points;
  const int replicas = world.size() / Pipeline::stage_count;
  const Pipeline pipeline{world, {.micro_batches = 3, .replicas = replicas}};
  Staged model = pipeline.template model<Input>(sk::Seed{5});
  sk::Trainer trainer{model, nn::CrossEntropy{}, o, pipeline};
  trainer.fit(points.set(), {.epochs = 3,
                             .batch = 24,
                             .clip_norm = clip,
                             .progress = false,
                             .threads = 1 + world.rank() % 3,
                             .check = {.replicas_every = 1}});
  const double norm = trainer.train_step().gradient_norm();
  RANK_CHECK((norm > 0) == (clip > 0) && world.broadcast(norm, 0) == norm);
}

/// PipeDream's pipelines beside each other step together: given the same samples, they are one of them, to the bit.
template <class Comm> void replicates_pipedream(Comm& world) {
  const Points points;
  const int replicas = world.size() / Pipeline::stage_count;
  Result expected;
  const auto run = [&](const Pipeline& pipeline, int parts, auto&& then) {
    Staged model = pipeline.model<Input>(sk::Seed{5});
    TrainStep train_step(model, {}, optimizer, pipeline);
    train_step.reserve({.capacity = 20, .threads = 1});
    auto batch = points.batch(0, 20);
    batch.global_count = 20 * parts;
    double loss = 0;
    for (int step = 0; step < 3; ++step) loss = train_step.step(batch).mean();
    then(model, loss);
  };
  PipelineOptions options{.schedule = PipelineSchedule::pipedream, .micro_batches = 5};
  sk::SelfComm self;
  run(Pipeline{self, options}, 1, [&](Staged& model, double loss) {
    expected.losses = {loss};
    for (int s = 0; s < Pipeline::stage_count; ++s)
      expected.parameters.insert(expected.parameters.end(), model.parameters(s).begin(), model.parameters(s).end());
    expected.buffers.assign(model.buffers(1).begin(), model.buffers(1).end());
  });
  options.replicas = replicas;
  run(Pipeline{world, options}, replicas, [&](Staged& model, double loss) {
    require_stages(model, expected);
    RANK_CHECK(loss == Approx(expected.losses[0]).epsilon(1e-6));
  });
}

/// Pairs are alike, and stay so, after a file of a training that tied nothing was loaded: values and momenta.
template <class Comm> void ties_what_is_loaded(Comm& world) {
  const Points points;
  auto data = points.set();
  const support::TemporaryFolder folder;
  const std::string path = world.broadcast(folder / "untied", 0);
  const sk::FitOptions once{.epochs = 1, .batch = 36, .progress = false, .threads = 1};
  if (world.rank() == 0) {
    sk::SelfComm self;
    Whole model{sk::Seed{5}};
    sk::Trainer serial{model, nn::CrossEntropy{}, optimizer, sk::parallel::Alone{}};
    serial.fit(data, once);
    serial.save(path);
  }
  world.barrier();
  constexpr plan::Entry a = Whole::parameter("3.weight"), b = Whole::parameter("6.body.0.weight");
  PipelineOptions options;
  options.tied = {{"3.weight", "6.body.0.weight"}};
  for (const bool whole_training : {false, true}) {
    const Pipeline pipeline{world, options};
    Staged staged = pipeline.template model<Input>(sk::Seed{6});
    sk::Trainer trainer{staged, nn::CrossEntropy{}, optimizer, pipeline};
    const auto alike = [&](const char* name) {
      const std::string saved = world.broadcast(folder / name, 0);
      trainer.save(saved);
      Whole read{sk::Seed{7}};
      read.load(saved);
      const float* const p = std::as_const(read).parameters().data;
      RANK_CHECK(std::equal(p + a.offset, p + a.offset + a.stored, p + b.offset));
      return std::vector<float>(p + a.offset, p + a.offset + a.stored);
    };
    if (whole_training) trainer.load(path);
    else trainer.load_weights(path);
    const std::vector<float> loaded = alike("loaded");
    Whole untied{sk::Seed{8}};
    untied.load(path);
    RANK_CHECK(std::equal(loaded.begin(), loaded.end(), std::as_const(untied).parameters().data + a.offset));
    sk::FitOptions more = once;
    more.epochs = whole_training ? 3 : 2;
    trainer.fit(data, more);
    RANK_CHECK(alike("trained") != loaded);
  }
  world.barrier();  // others read in the folder of rank 0
}

/// Tied weights: as if the two gradients were summed in a serial run.
template <class Comm> void ties(Comm& world) {
  const char *first = "3.weight", *second = "6.body.0.weight";
  const Points points;
  Whole model{sk::Seed{5}};
  constexpr plan::Entry a = Whole::parameter("3.weight"), b = Whole::parameter("6.body.0.weight");
  {
    const auto weights = model.modify();
    std::copy_n(weights.data() + a.offset, a.stored, weights.data() + b.offset);
  }
  sk::Executor<Whole, nn::CrossEntropy> executor(model, {},
                                                 {.capacity = 9, .execution = sk::Execution::layer_wise, .threads = 1});
  sk::optim::BoundOptimizer<Optimizer, float, sk::Cpu> bound(optimizer, Whole::program);
  double norm = 0;
  for (int step = 0; step < 4; ++step) {
    for (int m = 0; m < 4; ++m)
      executor.forward_backward(points.batch(step * 27 + 9 * m, 9),
                                {.scale = 1.0 / 9, .accumulate = m > 0, .key = 77u + static_cast<unsigned>(step)});
    float* g = model.gradients().data;
    for (long i = 0; i < a.stored; ++i) g[a.offset + i] = g[b.offset + i] = g[a.offset + i] + g[b.offset + i];
    sk::optim::StepCall<float> call;
    call.step = step + 1;
    call.lr = 0.05f;
    call.gradient_scale = 9.0 / 36;
    const float* gradients = g;
    call.gradients = &gradients;
    if (step == 0)  // of the pair one side
      norm = std::sqrt(bound.sum_of_squares(call, 0, Whole::sizes.stored) -
                       bound.sum_of_squares(call, b.offset, b.offset + b.stored));
    const auto weights = model.modify();
    bound.update(weights.data(), call, 0, Whole::sizes.stored);
  }
  Result expected;
  expected.parameters.assign(model.parameters().begin(), model.parameters().end());
  expected.buffers.assign(model.buffers().begin(), model.buffers().end());
  PipelineOptions options;
  options.tied = {{first, second}};
  pipelined(Pipeline{world, options}, 36, 1,
            [&](Staged& staged, TrainStep&, const std::vector<double>&) { require_stages(staged, expected); });
  Staged staged = Pipeline{world, options}.template model<Input>(sk::Seed{5});
  TrainStep clipped(staged, {}, optimizer, Pipeline{world, options});
  clipped.reserve({.capacity = 36, .threads = 2});
  clipped.step(points.batch(0, 36), sk::optim::StepOptions{.clip_norm = 1e9, .key = 77u});
  RANK_CHECK(clipped.gradient_norm() == Approx(norm).epsilon(1e-5));
  try {
    Optimizer apart = optimizer;
    apart.groups = sk::optim::frozen(first);
    TrainStep parts(staged, {}, apart, Pipeline{world, options});
    RANK_CHECK(!"rules that part a pair are refused");
  } catch (const sk::ArgumentError& e) { RANK_CHECK(std::string(e.what()).find("are one parameter") != std::string::npos); }
  options.tied = {{first, "0.weight"}};
  try {
    pipelined(Pipeline{world, options}, 36, 1, [](auto&&...) {});
    RANK_CHECK(!"different shapes are refused");
  } catch (const sk::ArgumentError& e) { RANK_CHECK(std::string(e.what()).find("different shapes") != std::string::npos); }
  options.tied = {{first, second}};
  options.table = [](int ranks, int, int micros) { return plan::pipedream(ranks, micros); };
  try {
    pipelined(Pipeline{world, options}, 36, 1, [](auto&&...) {});
    RANK_CHECK(!"stages that step one by one are refused");
  } catch (const sk::ArgumentError& e) { RANK_CHECK(std::string(e.what()).find("step one by one") != std::string::npos); }
}

/// A table of one's own whose stages step one by one makes as many steps of a batch as PipeDream's.
template <class Comm> void counts_the_updates_of_a_table(Comm& world) {
  const auto table = [](int ranks, int, int micros) { return plan::pipedream(ranks, micros); };
  for (const PipelineOptions& options :
       {PipelineOptions{.schedule = PipelineSchedule::pipedream}, PipelineOptions{.table = table}})
    pipelined(Pipeline{world, options}, 36, 1, [&](Staged&, TrainStep& train_step, const std::vector<double>&) {
      RANK_CHECK(train_step.updates_of(36) == 4);
      RANK_CHECK(train_step.updates_of(18) == 4);
      RANK_CHECK(train_step.updates_of(3) == 3);
    });
}

/// The Trainer over a pipeline: fit, validation, evaluate, predict, clipping; as the serial Trainer that accumulates.
template <class Comm> void trains(Comm& world) {
  using Two = sk::parallel::Pipeline<First, Second>;
  const Points points;
  auto data = points.set();
  const Optimizer sgd{.lr = 0.5f, .momentum = 0.5f};
  sk::FitOptions options{.epochs = 4,
                         .batch = 11,
                         .validate = data,
                         .clip_norm = 0.4,
                         .progress = false,
                         .threads = 1,
                         .step = {.accumulate = 3},
                         .compute = {.execution = sk::Execution::layer_wise}};
  sk::Model<Two::network, Input, sk::Cpu> model{sk::Seed{9}};
  sk::Trainer serial{model, nn::CrossEntropy{}, sgd};
  const auto expected = serial.fit(data, options);
  const auto outputs = serial.predict(data);

  const Two pipeline{world, {.micro_batch = 11, .replicas = world.size() > 1 ? world.size() / 2 : 1}};
  auto staged = pipeline.template model<Input>(sk::Seed{9});
  sk::Trainer trainer{staged, nn::CrossEntropy{}, sgd, pipeline};
  options.batch = 33;
  options.step.accumulate = 1;
  options.compute.execution = sk::Execution::automatic;
  const auto history = trainer.fit(data, options);
  for (int e = 0; e < 4; ++e) {
    const auto &mine = history.epochs()[static_cast<std::size_t>(e)], &theirs = expected.epochs()[static_cast<std::size_t>(e)];
    RANK_CHECK(mine.training.loss == Approx(theirs.training.loss).epsilon(1e-5));
    RANK_CHECK(mine.training.accuracy == Approx(theirs.training.accuracy));
    RANK_CHECK(mine.validation.loss == Approx(theirs.validation.loss).epsilon(1e-5));
    RANK_CHECK(mine.validation.accuracy == Approx(theirs.validation.accuracy));
  }
  RANK_CHECK(history.back().validation.loss < history.epochs().front().validation.loss);
  RANK_CHECK(trainer.evaluate(data, {.batch = 50}).loss == Approx(serial.evaluate(data).loss).epsilon(1e-5));
  const auto predicted = trainer.predict(data);  // on every rank
  for (long i = 0; i < 120 * 3; ++i) RANK_CHECK(predicted.data()[i] == Approx(outputs.data()[i]).margin(1e-4));

  // A file is that of the whole network: from the pipeline into one model, and back into a pipeline, which goes on with the same
  // bits.
  const support::TemporaryFolder folder;
  const std::string path = world.broadcast(folder / "pipeline", 0);
  trainer.save(path);
  serial.load(path);
  for (int s = 0; s < 2; ++s) {
    const auto mine = staged.parameters(s);
    RANK_CHECK(std::equal(mine.begin(), mine.end(), model.parameters().begin() + decltype(staged)::range(s).begin));
  }
  auto other = pipeline.template model<Input>(sk::Seed{10});
  sk::Trainer resumed{other, nn::CrossEntropy{}, sgd, pipeline};
  resumed.load(path);
  options.seed = sk::Seed{4};
  auto in_total = options;
  in_total.epochs += options.epochs;
  RANK_CHECK(trainer.fit(data, options).back().training.loss == resumed.fit(data, in_total).back().training.loss);
  for (int s = 0; s < 2; ++s)
    RANK_CHECK(std::equal(other.parameters(s).begin(), other.parameters(s).end(), staged.parameters(s).begin()));
}

/// What becomes of a training with commits: the last rank gets a signal at a step.
struct Committed {
  std::string folder{};
  std::int64_t every = 0, signal_at = 0;
  bool async = false;
};
struct Signals {
  std::int64_t at = 0;
  void on_update(std::int64_t step) const {
    if (step == at) ::raise(SIGUSR1);
  }
};

/// Commits of pipelines beside each other change nothing of a training: each replica keeps running statistics of its own, and one
/// that was ended by a signal and started again has them again, to the bit.
template <class Comm> void commits_change_nothing(Comm& world) {
  using Two = sk::parallel::Pipeline<nn::Sequential<nn::Linear<24>, nn::BatchNorm<>, nn::Relu>,
                                     nn::Sequential<nn::Linear<16>, nn::BatchNorm<>, nn::Linear<3>>>;
  const Points points;
  const auto data = points.set();
  const support::TemporaryFolder mine;
  const std::string folder = world.broadcast(mine / "run_", 0);
  for (const PipelineSchedule schedule : {PipelineSchedule::one_f_one_b, PipelineSchedule::zero_bubble}) {
    const auto outcome = [&](const Committed& committed) {
      const Two pipeline{world, {.schedule = schedule, .micro_batches = 3, .replicas = world.size() / 2}};
      auto model = pipeline.template model<Input>(support::seed_of_start(committed.folder, 9));
      sk::Trainer trainer{model, nn::CrossEntropy{}, optimizer, pipeline};
      sk::FitOptions o{.epochs = 3, .batch = 24, .progress = false, .threads = 1, .interrupt = {.also = SIGUSR1}};
      if (!committed.folder.empty())
        o.checkpoint = {.folder = committed.folder, .every = committed.every, .async = committed.async};
      o.callbacks.add(Signals{world.rank() + 1 == world.size() ? committed.signal_at : 0});
      std::vector<double> all;
      const sk::History history = trainer.fit(data, o);
      for (const auto& e : history.epochs()) all.push_back(e.training.loss);
      for (int s = 0; s < Two::stage_count; ++s) {
        all.insert(all.end(), model.parameters(s).begin(), model.parameters(s).end());
        all.insert(all.end(), model.buffers(s).begin(), model.buffers(s).end());
      }
      return all;
    };
    const std::string run = folder + std::to_string(static_cast<int>(schedule));
    const std::vector<double> whole = outcome({});
    RANK_CHECK(outcome({.folder = run + "_2", .every = 2}) == whole);
    RANK_CHECK(outcome({.folder = run + "_7", .every = 7}) == whole);
    RANK_CHECK(outcome({.folder = run + "_async", .every = 3, .async = true}) == whole);
    bool ended = false;
    try {
      (void)outcome({.folder = run + "_signal", .every = 100, .signal_at = 7});
    } catch (const sk::Interrupted&) { ended = true; }
    RANK_CHECK(ended);
    RANK_CHECK(outcome({.folder = run + "_signal", .every = 100}) == whole);
  }
}

/// A weight of a stage on one rank, changed after a step: what memory that flips a bit does.
template <class Model> struct ChangesWeight {
  Model* model;
  int stage;
  std::int64_t at;
  void on_update(std::int64_t step) const {
    if (step == at) model->parameters(stage).data[5] += 0.25f;
  }
};

/// Pipelines beside each other have the same weights after each step, whatever the schedule. Where one has not, all ranks hear
/// which parameter differs before a commit and at the end of the fit, or after the step where asked.
template <class Comm> void differing_replicas_are_named(Comm& world) {
  using Two = sk::parallel::Pipeline<nn::Sequential<nn::Linear<24>, nn::Relu>, nn::Linear<3>>;
  const Points points;
  const support::TemporaryFolder mine;
  const std::string folder = world.broadcast(mine / "run_", 0);
  const int replicas = world.size() / 2, bad_rank = world.size() - 1;  // which has the second stage
  const auto said = [&](PipelineSchedule schedule, std::int64_t changed_at, const sk::FitOptions& options) -> std::string {
    const Two pipeline{world, {.schedule = schedule, .micro_batches = 3, .replicas = replicas}};
    auto model = pipeline.template model<Input>(sk::Seed{9});
    sk::Trainer trainer{model, nn::CrossEntropy{}, optimizer, pipeline};
    sk::FitOptions o = options;
    o.epochs = 2, o.batch = 24, o.progress = false, o.threads = 1;
    o.callbacks.add(ChangesWeight<decltype(model)>{&model, 1, world.rank() == bad_rank ? changed_at : 0});
    try {
      trainer.fit(points.set(), o);
    } catch (const sk::CommError& e) { return e.what(); }
    return {};
  };
  int k = 0;
  for (const PipelineSchedule schedule : {PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe, PipelineSchedule::pipedream}) {
    RANK_CHECK(said(schedule, 0, {.check = {.replicas_every = 1}}).empty());
    const std::string run = folder + std::to_string(k++);
    for (const auto& [when, options] : {std::pair<std::string, sk::FitOptions>{"at the end of fit", {}},
                                        {"after step ", {.check = {.replicas_every = 1}}},
                                        {"before the commit of step ", {.checkpoint = {.folder = run, .every = 4}}}}) {
      const std::string text = said(schedule, 3, options);
      RANK_CHECK(text.find("the ranks have other weights " + when) != text.npos);
      RANK_CHECK(text.find("2.weight is of hash") != text.npos);
      RANK_CHECK(text.find("(and so differ") == text.npos);  // what other stages have is no difference
      const std::string most = "most ranks of its stages have the same, and rank " + std::to_string(bad_rank) + " differs";
      RANK_CHECK((text.find(most) != text.npos) == (replicas > 2));
    }
    RANK_CHECK(said(schedule, 0, {.checkpoint = {.folder = run, .every = 4}}).empty());  // nothing wrong was committed
  }
}

}  // namespace pipeline_cases
