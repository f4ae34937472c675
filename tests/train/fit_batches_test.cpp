// SPDX-License-Identifier: Apache-2.0
// The batches of a fit and its figures: what decides the order of samples, memory for every batch size, and what records say.
#include "skein/train/fit_batches.hpp"

#include <catch2/catch.hpp>

#include <cmath>

#include <skein/data/from_tensors.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/pipeline/pipeline.hpp>
#include <skein/train/fit_figures.hpp>
#include <skein/train/fitted_training_of.hpp>
#include <skein/train/trainer.hpp>

#include "../support/at_every_size.hpp"
#include "../support/rank_check.hpp"

namespace sk = skein;
namespace nn = skein::nn;
using namespace skein::train::detail;

namespace {
struct Net : nn::Sequential<nn::Linear<3>> {};

/// A training of 23 samples in three classes.
struct Fixture {
  sk::Tensor<float, 2> x{sk::dims(23, 4)};
  sk::Tensor<std::int32_t, 1> y{sk::dims(23)};
  sk::Model<Net, sk::Shape<4>> model{sk::Seed{1}};
  sk::Trainer<sk::Model<Net, sk::Shape<4>>, nn::CrossEntropy, sk::optim::Sgd> trainer{model, nn::CrossEntropy{},
                                                                                      sk::optim::Sgd{.lr = 0.5f}};
  sk::train::WeightsCopy<std::remove_cvref_t<decltype(trainer.train_step())>> kept;
  FittedTrainingOf<std::remove_cvref_t<decltype(trainer.train_step())>> training{trainer.train_step(), kept};

  Fixture() {
    for (long i = 0; i < 23; ++i) y(i) = static_cast<std::int32_t>(i % 3);
  }
};
}  // namespace

TEST_CASE("the batches of a fit: their order, and memory for the last and the validation's") {
  Fixture f;
  const auto set = sk::data::from_tensors(f.x, f.y);
  const FitFacts facts = f.training.facts();
  const sk::FitOptions options{.batch = 5, .validate = set, .threads = 1};
  FitBatches<float> batches(f.training, set, options, facts, sk::Seed{9});
  CHECK(batches.training().steps() == 5);
  REQUIRE(batches.validation());
  CHECK(batches.validation()->steps() == 5);
  const sk::train::EpochOrder order = batches.order();
  CHECK((order.seed == 9 && order.batch == 5 && order.samples == 23 && order.shards == 0));
  CHECK((order.shuffle && order.keeps_last));
  batches.reserve(f.training, {.threads = 1});
  CHECK(f.training.capacity() >= 5);
  for (const auto& batch : batches.training().epoch(0)) f.training.step(batch, {});
  CHECK(f.training.steps() == 5);

  const sk::FitOptions others{.batch = 5, .threads = 1, .loader = {.shuffle = false, .last = sk::data::LastBatch::drop}};
  FitBatches<float> dropping(f.training, set, others, facts, sk::Seed{9});
  CHECK(dropping.training().steps() == 4);
  CHECK(!dropping.validation());
  CHECK((!dropping.order().shuffle && !dropping.order().keeps_last));

  const sk::FitOptions large{.batch = 64, .threads = 1, .loader = {.last = sk::data::LastBatch::drop}};
  CHECK_THROWS_AS(FitBatches<float>(f.training, set, large, facts, sk::Seed{9}), sk::ArgumentError);
}

TEST_CASE("the shards of Partition::local decide the order of samples by their sizes") {
  Fixture f;
  const auto set = sk::data::from_tensors(f.x, f.y);
  const sk::FitOptions options{.batch = 5, .threads = 1, .loader = {.partition = sk::data::Partition::local}};
  FitBatches<float> batches(f.training, set, options, f.training.facts(), sk::Seed{9});
  CHECK(batches.order().samples == 23);
  CHECK(batches.order().shards != 0);
}

TEST_CASE("pipelines beside each other train with Partition::local, whose parts of a batch are uneven") {
  const Fixture f;
  support::on_threads(2, [&](sk::ThreadComm& world) {
    const long first = world.rank() == 0 ? 0 : 8, count = world.rank() == 0 ? 8 : 15;
    sk::Tensor<float, 2> x{sk::dims(count, 4)};
    sk::Tensor<std::int32_t, 1> y{sk::dims(count)};
    for (long i = 0; i < count; ++i) y(i) = f.y(first + i);
    const sk::parallel::Pipeline<nn::Linear<3>> pipeline{world, {.replicas = 2}};
    auto model = pipeline.model<sk::Shape<4>>(sk::Seed{1});
    sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.5f}, pipeline};
    const auto history = trainer.fit(
        sk::data::from_tensors(x, y),
        {.epochs = 1, .batch = 9, .progress = false, .threads = 1, .loader = {.partition = sk::data::Partition::local}});
    RANK_CHECK(trainer.train_step().steps() == 3);  // of 4 + 5, 4 + 5, 0 + 5 samples
    RANK_CHECK(history.size() == 1);
  });
}

TEST_CASE("the figures of a fit: mean losses, shares of right answers, rates, and what is left") {
  Fixture f;
  FitFacts facts = f.training.facts();
  FitFigures<float> figures(f.training, facts);
  const double before = sk::seconds_now();
  figures.begin(before);
  figures.begin_epoch(0);
  sk::train::TrainingPosition at;
  at.base = 2, at.epoch = 1, at.step = 2, at.samples = 20;
  at.sums = {10, 20, 15};
  for (int i = 0; i < 2; ++i) figures.count_step();

  const sk::train::EpochRecord epoch = figures.epoch(at, at.sums, 0.5);
  CHECK(epoch.epoch == 4);
  CHECK(epoch.training.loss == 0.5);
  CHECK(epoch.training.accuracy == 0.75);
  CHECK(epoch.learning_rate == 0.25);
  CHECK(epoch.samples_per_second >= 20 / (sk::seconds_now() - before));

  const sk::train::StepRecord step = figures.step({4, 8, 12}, {.all = 20, .own = 10}, 4, 1);
  CHECK((step.epoch == 4 && step.loss == 0.5 && step.learning_rate == 0.5));
  CHECK(step.accuracy == 12.0 / 20);  // of both batches of the step, over all ranks
  CHECK(figures.last() >= before);
  CHECK(step.seconds >= 0);

  const sk::train::ProgressState progress = figures.progress(at, 4, 3, before + 6);
  CHECK((progress.epoch == 4 && progress.epochs == 5 && progress.step == 2 && progress.steps == 4));
  CHECK(progress.accuracy == 0.75);
  CHECK(progress.seconds_left == Approx(6.0 / 2 * 6));  // two steps took 6 s; two of this epoch are left, and four of the next
  CHECK(progress.exposed_communication != progress.exposed_communication);  // of one rank: not measured
  facts.local_sums = true, facts.parts = 4;                                 // the sums are this rank's: so are the samples
  figures.begin_epoch(8);                                                   // two were its own before
  figures.count_own(3), figures.count_own(3);
  at.sums = {4, 8, 6};
  CHECK(figures.progress(at, 4, 3, before + 6).accuracy == 0.75);
  facts.labels = false;
  CHECK(figures.epoch(at, at.sums, 1).training.accuracy != figures.epoch(at, at.sums, 1).training.accuracy);
}

namespace {
/// Seconds of waiting, as a test says them.
struct Waits : sk::parallel::PolicyBase {
  struct State : sk::parallel::PolicyState {
    const double* seconds = nullptr;
    double exposed_seconds() const { return *seconds; }
  };
  const double* seconds;
  explicit Waits(const double& of) : seconds(&of) {}
  template <class R> State bind(const R&) const { return {{}, seconds}; }
};
}  // namespace

TEST_CASE("the exposed share in the record of a step is of the time since the record before") {
  double exposed = 3;
  sk::Model<Net, sk::Shape<4>> model{sk::Seed{1}};
  sk::train::TrainStep step{model, nn::CrossEntropy{}, sk::optim::Sgd{}, Waits{exposed}};
  sk::train::WeightsCopy<decltype(step)> kept;
  FittedTrainingOf<decltype(step)> training{step, kept};
  const FitFacts facts = training.facts();
  FitFigures<float> figures(training, facts);
  figures.begin(sk::seconds_now() - 1000);
  figures.begin_epoch(0);
  exposed += 250;
  CHECK(figures.step({1, 1, 1}, {.all = 4, .own = 4}, 1, 1).exposed_communication == Approx(0.25).epsilon(0.01));
  CHECK(figures.step({1, 1, 1}, {.all = 4, .own = 4}, 1, 1).exposed_communication == 0);
}

TEST_CASE("samples a second are of the samples that this fit has trained on, not of those before a file was saved") {
  Fixture f;
  const FitFacts facts = f.training.facts();
  FitFigures<float> figures(f.training, facts);
  const double begin = sk::seconds_now();
  figures.begin(begin);
  figures.begin_epoch(900'000'000'000);
  sk::train::TrainingPosition at;
  at.samples = 900'000'000'000;
  at.sums = {10, 20, 15};
  CHECK(std::isnan(figures.epoch(at, at.sums, 1).samples_per_second));  // the file was saved after the last step
  at.samples += 20;
  CHECK(figures.progress(at, 4, 3, begin + 10).samples_per_second == Approx(2).epsilon(0.01));
}
