// SPDX-License-Identifier: Apache-2.0
// What a train step is: those of the library are, what lacks a function is not; and the arrays that files ask of one.
#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <skein/comm/self/self_comm.hpp>
#include <skein/comm/thread/thread_comm.hpp>
#include <skein/nn/batch_norm.hpp>
#include <skein/nn/fused/linear_activation.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/model.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel.hpp>
#include <skein/parallel/training_arrays.hpp>
#include <skein/train/concepts.hpp>
#include <skein/train/step/step_arrays.hpp>
#include <skein/train/trainer.hpp>

namespace {
namespace sk = skein;
namespace nn = skein::nn;
namespace numbers = skein::parallel::training_arrays;

using First = nn::Sequential<nn::Linear<3>, nn::BatchNorm<>>;
using Second = nn::Linear<2>;
using Model = sk::Model<nn::Sequential<nn::Linear<3>, nn::BatchNorm<>, nn::Linear<2>>, sk::Shape<4>>;
template <class M, class Policy> using StepOf = typename sk::Trainer<M, nn::Mse, sk::optim::Sgd, Policy>::TrainStep;
using Alone = StepOf<Model, sk::parallel::SingleProcess>;
using Averaged = StepOf<Model, sk::parallel::ModelAverage<sk::ThreadComm, sk::parallel::Period<2>>>;
using Stages = sk::parallel::Pipeline<First, Second>;
using Staged = StepOf<decltype(std::declval<const Stages&>().model<sk::Shape<4>>()), Stages>;

static_assert(sk::train::IsTrainStep<Alone> && sk::train::IsTrainStep<Averaged> && sk::train::IsTrainStep<Staged>);

/// Has all functions but one: a file has no name for what it is given.
struct NoArrays : Alone {
  void arrays() = delete;
};
struct CannotCount : Alone {
  void updates_of(long) = delete;
};
static_assert(!sk::train::IsTrainStep<NoArrays> && !sk::train::IsTrainStep<CannotCount> && !sk::train::IsTrainStep<Model>);

/// Samples of so many values, with zeros in the gaps.
std::vector<float> rows(long samples, int width) {
  std::vector<float> all(static_cast<std::size_t>(samples * sk::row_pitch(width)));
  for (long i = 0; i < samples; ++i) std::fill_n(all.begin() + i * sk::row_pitch(width), width, 0.1f * static_cast<float>(i));
  return all;
}

}  // namespace

TEST_CASE("a step of a pipeline leaves no update out: what asks for it is refused") {
  sk::SelfComm world;
  const Stages pipeline{world, {.micro_batches = 2}};
  auto model = pipeline.model<sk::Shape<4>>(sk::Seed{2});
  Staged step(model, {}, {.lr = 0.1f}, pipeline);
  step.reserve({.capacity = 4, .threads = 1});
  const std::vector<float> x = rows(4, 4), y = rows(4, 2);
  sk::BatchView<float> batch{.x = x.data(), .pitch = sk::row_pitch(4), .targets = y.data(), .target_pitch = sk::row_pitch(2)};
  batch.count = batch.global_count = 4;
  try {
    step.step(batch, {.finite = true});
    FAIL("refused");
  } catch (const sk::ArgumentError& e) { CHECK(std::string(e.what()).find("the stages update one by one") != std::string::npos); }
  CHECK(step.steps() == 0);
  CHECK(step.step(batch).mean() > 0);
}

TEST_CASE("an evaluation in an accumulation leaves the step what it is; memory made anew ends it") {
  const std::vector<float> x = rows(64, 4), y = rows(64, 2);
  const auto batch = [&](long count) {
    return sk::BatchView<float>{.x = x.data(),
                                .pitch = sk::row_pitch(4),
                                .targets = y.data(),
                                .target_pitch = sk::row_pitch(2),
                                .count = count,
                                .global_count = count};
  };
  const auto trained = [&](bool evaluates, int threads) {
    Model model{sk::Seed{1}};
    sk::train::TrainStep step(model, nn::Mse{}, sk::optim::Sgd{.lr = 0.1f}, sk::parallel::SingleProcess{});
    step.reserve({.capacity = 64, .threads = threads});
    step.step(batch(8), {.update = false});
    if (evaluates) {
      CHECK(step.evaluate(batch(64)).weight == 128);
      CHECK(step.evaluate(batch(4), true).weight == 136);
    }
    CHECK(step.step(batch(8), {.accumulate = true}).weight == 32);
    if (evaluates) CHECK(step.evaluate(batch(4), true).weight == 144);
    return std::vector<float>(std::as_const(model).parameters().begin(), std::as_const(model).parameters().end());
  };
  for (int threads : {1, 2}) CHECK(trained(false, threads) == trained(true, threads));

  Model model{sk::Seed{1}};
  sk::train::TrainStep step(model, nn::Mse{}, sk::optim::Sgd{.lr = 0.1f}, sk::parallel::SingleProcess{});
  step.reserve({.capacity = 8, .threads = 1});
  step.step(batch(8), {.update = false});
  step.reserve({.capacity = 64, .threads = 1});
  CHECK_THROWS_AS(step.step(batch(8), {.accumulate = true}), sk::ArgumentError);
  CHECK(step.step(batch(8)).weight == 16);
}

TEST_CASE("a train step's arrays: parts of this rank, whole ones with zeros for what is frozen, and set from the host") {
  Model model{sk::Seed{1}};
  const sk::optim::Sgd optimizer{.lr = 0.1f, .momentum = 0.9f, .groups = {sk::optim::frozen("0.*")}};
  sk::train::TrainStep step(model, nn::Mse{}, optimizer, sk::parallel::SingleProcess{});
  static_assert(sk::train::IsTrainStep<decltype(step)>);
  auto arrays = step.arrays();
  REQUIRE(arrays.count() == numbers::optimizer + 1);

  std::vector<float> given(static_cast<std::size_t>(Model::sizes.stored));
  for (std::size_t i = 0; i < given.size(); ++i) given[i] = 1 + static_cast<float>(i);
  arrays.set(numbers::optimizer, given.data());
  long begin = -1, end = -1;
  arrays.each_part(numbers::optimizer, [&](sk::plan::Range r, const float* values) {
    begin = r.begin, end = r.end;
    CHECK(std::equal(values, values + (r.end - r.begin), given.begin() + r.begin));
  });
  CHECK(begin >= 4 * 3 + 3);  // the frozen layer's are not kept
  CHECK(end == Model::sizes.stored);
  const auto whole = arrays.whole(numbers::optimizer);
  REQUIRE(static_cast<long>(whole.size) == Model::sizes.stored);
  CHECK(std::all_of(whole.begin(), whole.begin() + begin, [](float v) { return v == 0; }));
  CHECK(std::equal(whole.begin() + begin, whole.end(), given.begin() + begin));

  const std::vector<float> buffers(static_cast<std::size_t>(Model::sizes.buffers), 0.5f);
  {
    const auto lease = model.modify();
    arrays.set(numbers::parameters, given.data()), arrays.set(numbers::buffers, buffers.data());
  }
  CHECK(std::equal(given.begin(), given.end(), std::as_const(model).parameters().begin()));
  CHECK(std::equal(buffers.begin(), buffers.end(), model.buffers().begin()));
}
