// SPDX-License-Identifier: Apache-2.0
// A pipeline's train step whose memory is made anew, or that shares its pipeline with another.
#include "../../support/pipeline_cases.hpp"
#include "../../support/at_every_size.hpp"
#include "../../support/thrown.hpp"

#include <skein/nn/conv2d.hpp>
#include <skein/nn/flatten.hpp>

namespace cases = pipeline_cases;
namespace sk = skein;
namespace nn = skein::nn;
using S = sk::parallel::PipelineSchedule;
using support::on_threads;

namespace pipeline_train_step_test {
/// Gradients of a convolution are sums over the workers of a rank.
using Images = sk::parallel::Pipeline<nn::Sequential<nn::Conv2d<4, sk::Kernel<3>>, nn::Relu, nn::Flatten>, nn::Linear<3>>;
using Image = sk::Shape<6, 6, 1>;

sk::data::Batch<float> images(const support::Points& points, long first, long count) {
  sk::data::Batch<float> b;
  b.x = points.x.data() + 36 * first;
  b.pitch = 36;
  b.labels = points.labels.data() + first;
  b.count = b.global_count = count;
  b.first = first;
  return b;
}
/// The parameters after a step whose gradients are those of 9 samples and then of 8, with between(train_step) after the first.
template <class Between> std::vector<float> accumulated(int threads, const Between& between) {
  const support::Points points(32, {3, {6, 6, 1}});
  sk::SelfComm self;
  const Images pipeline{self, {.schedule = S::gpipe, .micro_batches = 8}};
  auto model = pipeline.model<Image>(sk::Seed{5});
  sk::parallel::PipelineTrainStep train_step(model, nn::CrossEntropy{}, cases::optimizer, pipeline);
  train_step.reserve({.capacity = 9, .threads = threads});
  train_step.step(images(points, 0, 9), {.update = false});
  between(train_step, points);
  train_step.step(images(points, 9, 8), {.accumulate = true});
  std::vector<float> all;
  for (int s = 0; s < Images::stage_count; ++s) all.insert(all.end(), model.parameters(s).begin(), model.parameters(s).end());
  return all;
}
}  // namespace pipeline_train_step_test
using namespace pipeline_train_step_test;

TEST_CASE("what a pipeline has accumulated stays when its memory is made anew", "[parallel]") {
  const auto nothing = [](auto&, const support::Points&) {};  // but the second batch is of more micro-batches
  const auto reserves = [](auto& train_step, const support::Points&) { train_step.reserve({.capacity = 20, .threads = 2}); };
  const auto other_threads = [](auto& train_step, const support::Points&) { train_step.reserve({.capacity = 9, .threads = 3}); };
  const auto evaluates = [](auto& train_step, const support::Points& points) {
    train_step.reserve({.capacity = 32, .threads = 2});
    train_step.evaluate(images(points, 0, 32));
  };
  const std::vector<float> expected = accumulated(1, nothing);
  const auto close = [&](const std::vector<float>& found) {
    return std::equal(found.begin(), found.end(), expected.begin(), [](float a, float b) { return std::abs(a - b) < 1e-5f; });
  };
  CHECK(close(accumulated(2, nothing)));
  CHECK(close(accumulated(2, reserves)));
  CHECK(close(accumulated(2, other_threads)));
  CHECK(close(accumulated(2, evaluates)));
}
TEST_CASE("train steps of one pipeline take turns", "[parallel]") {
  on_threads(4, [](auto& world) {
    sk::parallel::PipelineOptions options;
    options.tied = {{"3.weight", "6.body.0.weight"}};
    const cases::Pipeline pipeline{world, options};
    const cases::Points points;
    const auto run = [&](bool another) {
      cases::Staged model = pipeline.template model<cases::Input>(sk::Seed{5});
      cases::TrainStep train_step(model, {}, cases::optimizer, pipeline);
      train_step.reserve({.capacity = 36, .threads = 1});
      train_step.step(points.batch(0, 36));
      if (another) {
        cases::Staged other = pipeline.template model<cases::Input>(sk::Seed{6});
        cases::TrainStep beside(other, {}, cases::optimizer, pipeline);
      }
      return train_step.step(points.batch(36, 36)).loss;
    };
    RANK_CHECK(run(true) == run(false));
  });
}
TEST_CASE("a pipeline that found no memory does not ask for as much again", "[parallel]") {
  sk::SelfComm self;
  const cases::Pipeline pipeline{self, {.micro_batches = 2}};
  cases::Staged model = pipeline.model<cases::Input>(sk::Seed{5});
  sk::Trainer trainer{model, nn::CrossEntropy{}, cases::optimizer, pipeline};
  auto& train_step = trainer.train_step();
  CHECK_THROWS_AS(train_step.reserve({.capacity = 1L << 60, .threads = 1}), sk::MemoryError);
  CHECK(train_step.capacity() == 0);
  const cases::Points points;
  CHECK_NOTHROW(trainer.evaluate(points.set(), {.batch = 30}));
  CHECK(train_step.capacity() == 30);
}
TEST_CASE("a step of a pipeline whose scaled gradients overflow is in no sum of the epoch", "[parallel]") {
  sk::SelfComm self;
  const cases::Pipeline pipeline{self, {.micro_batches = 2}};
  auto model = pipeline.model<cases::Input, sk::Cpu, sk::precision::fp16>(sk::Seed{5});
  sk::parallel::PipelineTrainStep train_step(model, nn::CrossEntropy{}, cases::optimizer, pipeline);
  train_step.set_loss_scaling({.initial = 1L << 30, .greatest = 1L << 30});
  train_step.reserve({.capacity = 8, .threads = 1});
  const cases::Points points;
  int skipped = 0;
  for (int i = 0; i < 40; ++i) {
    const auto steps = train_step.steps();
    const auto before = train_step.totals();
    const auto sums = train_step.step(points.batch(0, 8));
    const bool counts = train_step.steps() > steps;
    skipped += !counts;
    CHECK(train_step.totals().weight == before.weight + (counts ? sums.weight : 0));
    CHECK(train_step.totals().correct == before.correct + (counts ? sums.correct : 0));
  }
  CHECK((skipped > 0 && skipped < 40));
}
TEST_CASE("a micro-batch of one sample has no variance, and the sentence says what a pipeline can do", "[parallel]") {
  sk::SelfComm self;
  const cases::Pipeline pipeline{self, {.micro_batches = 4}};
  cases::Staged model = pipeline.model<cases::Input>(sk::Seed{5});
  cases::TrainStep train_step(model, {}, cases::optimizer, pipeline);
  train_step.reserve({.capacity = 13, .threads = 1});
  const cases::Points points;
  const std::string said = support::thrown<sk::ArgumentError>([&] { train_step.step(points.batch(0, 13)); });
  CHECK(said.find("In a Pipeline the batch is a micro-batch: give .batch and .micro_batches") != std::string::npos);
  CHECK_NOTHROW(train_step.step(points.batch(0, 12)));
}
