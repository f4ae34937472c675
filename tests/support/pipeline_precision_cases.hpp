// SPDX-License-Identifier: Apache-2.0
// Pipelines whose activations are stored in 16 bits, and whose loss is scaled: what they must do on any communicator of the host.
// The serial run is one model of the same precision, whose gradients are accumulated over the same micro-batches.
#pragma once
#include <skein/comm/counted.hpp>
#include <skein/nn/precision.hpp>
#include <skein/optim/transform/chain.hpp>
#include <skein/optim/transform/lars.hpp>

#include "pipeline_cases.hpp"

namespace pipeline_cases {

/// Of eight steps. `scale`: the loss's, after each; so many were skipped.
template <class Scalar = float> struct Course {
  std::vector<Scalar> parameters;
  std::vector<double> losses, scales;
  std::int64_t steps = 0, skipped = 0;
};

/// The scale overflows at once, comes down, and is raised again.
inline const sk::optim::LossScaling restless{.initial = 2097152, .interval = 2};

template <class TrainStep> void set_scaling(TrainStep& train_step) {
  if constexpr (requires { train_step.loss_scaler(); })
    if (train_step.loss_scaler().active()) train_step.set_loss_scaling(restless);
}
template <class TrainStep, class Scalar> void note(Course<Scalar>& c, TrainStep& train_step, double loss) {
  c.losses.push_back(loss);
  c.steps = train_step.steps();
  if constexpr (requires { train_step.loss_scaler(); })
    c.scales.push_back(train_step.loss_scaler().scale()), c.skipped = train_step.loss_scaler().skipped();
}

/// Without a normalization: the gradient of a bias before one is nothing but rounding, which Lars would raise to a step.
using Plain = sk::parallel::Pipeline<S0, nn::Sequential<nn::Linear<16>, nn::Relu>, S2, S3>;

template <class Precision, class P = Pipeline, class O> auto serial_course(long batch, long micro, const O& o, double clip) {
  using Model = sk::Model<typename P::network, Input, sk::Cpu, Precision>;
  const Points points;
  Model model{sk::Seed{5}};
  sk::train::TrainStep<Model, nn::CrossEntropy, O> train_step(model, {}, o, {});
  train_step.reserve({.capacity = micro, .execution = sk::Execution::layer_wise, .threads = 1});
  set_scaling(train_step);
  Course<> c;
  for (int step = 0; step < 8; ++step)
    for (long at = 0; at < batch; at += micro) {
      const bool last = at + micro >= batch;
      const auto sums =
          train_step.step(points.batch(step * 9 + at, std::min(micro, batch - at)),
                          {.clip_norm = clip, .accumulate = at > 0, .update = last, .key = 77u + static_cast<unsigned>(step)});
      if (last) note(c, train_step, sums.mean());
    }
  c.parameters.assign(model.parameters().begin(), model.parameters().end());
  return c;
}

/// then(model, course) on each rank.
template <class Precision, class P, class O, class Then>
void pipeline_course(const P& pipeline, long batch, int threads, const O& o, double clip, Then&& then) {
  const Points points;
  auto model = pipeline.template model<Input, sk::Cpu, Precision>(sk::Seed{5});
  sk::parallel::PipelineTrainStep<decltype(model), nn::CrossEntropy, O> train_step(model, {}, o, pipeline);
  train_step.reserve({.capacity = batch, .threads = threads});
  set_scaling(train_step);
  Course<> c;
  for (int step = 0; step < 8; ++step) {
    const sk::optim::StepOptions options{.clip_norm = clip, .key = 77u + static_cast<unsigned>(step)};
    note(c, train_step, train_step.step(points.batch(step * 9, batch), options).mean());
  }
  then(model, c);
}

template <class Model> void require_parameters(Model& model, const Course<>& expected, double tolerance) {
  for (int s = 0; s < Pipeline::stage_count; ++s) {
    const auto mine = model.parameters(s);
    const float* whole = expected.parameters.data() + Model::range(s).begin;
    for (std::size_t i = 0; i < mine.size; ++i)
      RANK_CHECK(tolerance == 0 ? mine[i] == whole[i] : std::abs(mine[i] - whole[i]) <= tolerance);
  }
}

/// The bits of the serial run: weights, losses, and the scale of each step. More workers: sums of another order.
template <class Precision, class Comm>
void precision_agrees_with_serial(Comm& world, std::initializer_list<PipelineSchedule> schedules) {
  const bool scaled = std::same_as<Precision, sk::precision::fp16>;
  for (const auto& [batch, micros] : {std::pair{36L, 4}, std::pair{37L, 6}}) {
    const Course<> expected = serial_course<Precision>(batch, (batch + micros - 1) / micros, optimizer, 0);
    RANK_CHECK(scaled == (expected.skipped > 1) && expected.steps == 8 - expected.skipped);
    for (PipelineSchedule schedule : schedules)
      pipeline_course<Precision>(Pipeline{world, {.schedule = schedule, .micro_batches = micros}}, batch, 1, optimizer, 0,
                                 [&](auto& model, const Course<>& c) {
                                   require_parameters(model, expected, 0);
                                   RANK_CHECK(c.losses == expected.losses && c.scales == expected.scales);
                                   RANK_CHECK(c.steps == expected.steps && c.skipped == expected.skipped);
                                 });
  }
  const Course<> expected = serial_course<Precision>(36, 9, optimizer, 0);
  for (int threads : {2, 4})
    pipeline_course<Precision>(Pipeline{world, {.schedule = *schedules.begin()}}, 36, threads, optimizer, 0,
                               [&](auto& model, const Course<>& c) {
                                 require_parameters(model, expected, 2e-3);
                                 RANK_CHECK(c.scales == expected.scales);
                               });
}

/// A norm over all stages, by which is clipped, at the head of a chain or further on; a transform that wants whole tensors.
template <class Precision, class Comm> void transforms_agree_with_serial(Comm& world) {
  const auto agrees = [&](const auto& o, double clip) {
    const Course<> expected = serial_course<Precision, Plain>(36, 9, o, clip);
    const Course<> free = serial_course<Precision, Plain>(36, 9, optimizer, 0);
    RANK_CHECK(expected.parameters != free.parameters);
    for (int threads : {1, 2})
      pipeline_course<Precision>(Plain{world}, 36, threads, o, clip,
                                 [&](auto& model, const Course<>&) { require_parameters(model, expected, 1e-4); });
  };
  using sk::optim::chain, sk::optim::ClipNorm;
  agrees(optimizer, 0.05);
  agrees(chain(ClipNorm{0.2f}, sk::optim::Lars{.trust = 0.05f}, ClipNorm{0.01f}, optimizer), 0);
}

/// What leaves a rank: half of the bytes of edges, and the sums of each micro-batch behind its gradient.
template <class Comm> void links_carry_sixteen_bits(Comm& world) {
  const auto bytes = [&]<class Precision>(Precision) {
    sk::Counted counted{world};
    const Pipeline pipeline{counted, {.micro_batches = 4}};
    auto model = pipeline.model<Input, sk::Cpu, Precision>(sk::Seed{5});
    sk::parallel::PipelineTrainStep<decltype(model), nn::CrossEntropy, Optimizer> train_step(model, {}, optimizer, pipeline);
    train_step.reserve({.capacity = 36, .threads = 1});
    const auto before = counted.counts();
    train_step.step(Points{}.batch(0, 36));
    return counted.counts() - before;
  };
  const auto wide = bytes(sk::precision::fp32{}), narrow = bytes(sk::precision::bf16{});
  const long edges = (world.rank() < 3) + (world.rank() > 0), sums = world.rank() > 0 ? 4 * 3 * 8 : 0;  // 4 micro-batches
  RANK_CHECK(wide.messages == 4 * edges && narrow.messages == wide.messages);
  RANK_CHECK(wide.bytes == edges * 36 * sk::row_pitch(16) * 4 + sums);
  RANK_CHECK(narrow.bytes == edges * 36 * sk::row_pitch(16) * 2 + sums);
}

/// PipeDream: bf16 trains as it does in one process, to the bit; a loss that is scaled is refused, since its stages cannot skip a
/// step together.
template <class Comm> void pipedream_in_sixteen_bits(Comm& world) {
  const PipelineOptions options{.schedule = PipelineSchedule::pipedream, .micro_batches = 4};
  sk::SelfComm self;
  Course<> expected;
  expected.parameters.resize(static_cast<std::size_t>(Whole::sizes.stored));
  pipeline_course<sk::precision::bf16>(Pipeline{self, options}, 36, 1, optimizer, 0, [&](auto& model, const Course<>&) {
    for (int s = 0; s < Pipeline::stage_count; ++s)
      std::copy(model.parameters(s).begin(), model.parameters(s).end(), expected.parameters.begin() + model.range(s).begin);
  });
  pipeline_course<sk::precision::bf16>(Pipeline{world, options}, 36, 1, optimizer, 0,
                                       [&](auto& model, const Course<>&) { require_parameters(model, expected, 0); });
  try {
    pipeline_course<sk::precision::fp16>(Pipeline{world, options}, 36, 1, optimizer, 0, [](auto&&...) {});
    RANK_CHECK(!"refused");
  } catch (const sk::ArgumentError& e) {
    RANK_CHECK(std::string(e.what()).find("cannot skip a step together") != std::string::npos);
  }
}

/// A step that is skipped since its activations overflow leaves no trace in the running statistics of any stage, nor does one
/// that throws.
template <class Comm> void gives_back_statistics(Comm& world) {
  const Pipeline pipeline{world, {.micro_batches = 4}};
  auto model = pipeline.template model<Input, sk::Cpu, sk::precision::fp16>(sk::Seed{5});
  sk::parallel::PipelineTrainStep<decltype(model), nn::CrossEntropy, Optimizer> train_step(model, {}, optimizer, pipeline);
  train_step.reserve({.capacity = 36, .threads = 1});
  train_step.set_loss_scaling({.initial = 1024});
  const auto statistics = [&] {
    std::vector<float> all;
    for (int s = 0; s < Pipeline::stage_count; ++s) {
      const auto own = model.buffers(s);
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  };
  const Points points;
  const std::vector<float> far(36 * 12, 1e8f);
  auto good = points.batch(0, 36), bad = good;
  bad.x = far.data();
  const std::vector<float> at_first = statistics();
  train_step.step(good);
  const std::vector<float> before = statistics();
  RANK_CHECK(before.empty() || before != at_first);
  RANK_CHECK(!std::isfinite(train_step.step(bad).loss));
  RANK_CHECK(train_step.loss_scaler().skipped() == 1 && train_step.steps() == 1);
  RANK_CHECK(statistics() == before);
  train_step.step(good, {.update = false});  // of an accumulation both batches are given back
  RANK_CHECK(before.empty() || statistics() != before);
  train_step.step(bad, {.accumulate = true});
  RANK_CHECK(train_step.loss_scaler().skipped() == 2 && statistics() == before);
}

/// The Trainer: .loss_scaling, the scale in a file, and predictions.
template <class Comm> void trains_scaled(Comm& world) {
  using Two = sk::parallel::Pipeline<First, Second>;
  const Points points;
  const auto data = sk::data::from_tensors(points.x, sk::Extents{1, {12}}, points.labels);
  const Two pipeline{world, {.micro_batches = 3}};
  auto model = pipeline.template model<Input, sk::Cpu, sk::precision::fp16>(sk::Seed{9});
  sk::Trainer trainer{model, nn::CrossEntropy{}, Optimizer{.lr = 0.5f}, pipeline};
  const sk::FitOptions options{
      .epochs = 6, .batch = 33, .validate = data, .progress = false, .threads = 1, .step = {.loss_scaling = restless}};
  const auto history = trainer.fit(data, options);
  RANK_CHECK(history.back().training.loss < history.epochs().front().training.loss);
  RANK_CHECK(trainer.train_step().loss_scaler().skipped() > 0);
  const support::TemporaryFolder folder;
  const std::string path = world.broadcast(folder / "pipeline", 0);
  trainer.save(path);
  auto other = pipeline.template model<Input, sk::Cpu, sk::precision::fp16>(sk::Seed{10});
  sk::Trainer resumed{other, nn::CrossEntropy{}, Optimizer{.lr = 0.5f}, pipeline};
  resumed.load(path);
  RANK_CHECK(resumed.train_step().loss_scaler().scale() == trainer.train_step().loss_scaler().scale());
  const auto mine = trainer.predict(data), theirs = resumed.predict(data);
  RANK_CHECK(std::equal(mine.data(), mine.data() + 120 * 3, theirs.data()));
}

}  // namespace pipeline_cases
