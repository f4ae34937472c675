// SPDX-License-Identifier: Apache-2.0
// What one call of fit works with: the options of each step, and what callbacks and signals ask for.
#include "skein/train/fit_work.hpp"

#include <catch2/catch.hpp>

#include <skein/data/from_tensors.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/sequential.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/train/agree_on_control.hpp>
#include <skein/train/fitted_training_of.hpp>
#include <skein/train/trainer.hpp>

namespace sk = skein;
namespace nn = skein::nn;
using namespace skein::train::detail;

namespace {
struct Net : nn::Sequential<nn::Linear<3>> {};
using Model = sk::Model<Net, sk::Shape<4>>;
using Trainer = sk::Trainer<Model, nn::CrossEntropy, sk::optim::Sgd>;
using Step = std::remove_cvref_t<decltype(std::declval<Trainer&>().train_step())>;

/// A fit of 23 samples in batches of 5, two to a step of the optimizer.
struct Fixture {
  sk::Tensor<float, 2> x{sk::dims(23, 4)};
  sk::Tensor<std::int32_t, 1> y{sk::dims(23)};
  Model model{sk::Seed{1}};
  Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.5f}};
  sk::train::WeightsCopy<Step> kept;
  FittedTrainingOf<Step> training{trainer.train_step(), kept};
  sk::data::DatasetView set = sk::data::from_tensors(x, y);
  sk::FitOptions options{.epochs = 2, .batch = 5, .clip_norm = 3, .threads = 1, .step = {.accumulate = 2}};
  FitFacts facts = training.facts();
  FitBatches<float> batches{training, set, options, facts, sk::Seed{9}};
  sk::train::TrainingPosition position;
  FitWork<float> work{training, options, batches, facts, position};
};
}  // namespace

TEST_CASE("updates of an epoch: one for each two of five batches, the last one alone") {
  Fixture f;
  CHECK(updates_of_epoch(f.training, f.batches.training(), 1) == 5);
  CHECK(updates_of_epoch(f.training, f.batches.training(), 2) == 3);
}

TEST_CASE("the options of a step: which batch of an accumulation it is, the rate, a key of its own") {
  Fixture f;
  f.position.rate_factor = 0.25;
  std::vector<sk::optim::StepOptions> steps;
  int pending = 0;
  for (const auto& batch : f.batches.training().epoch(0)) {
    steps.push_back(f.work.step_options(batch, pending));
    pending = steps.back().update ? 0 : pending + 1;
  }
  REQUIRE(steps.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    INFO(i);
    CHECK(steps[i].accumulate == (i % 2 == 1));
    CHECK(steps[i].update == (i % 2 == 1 || i == 4));
    CHECK((steps[i].lr_factor == 0.25 && steps[i].clip_norm == 3));
    CHECK((i == 0 || steps[i].key != steps[i - 1].key));
  }
  CHECK(f.work.factor == 0.25);
}

TEST_CASE("what callbacks ask for: the rate is the position's, weights are kept once") {
  Fixture f;
  f.work.control.set_rate_factor(0.5);
  agree_on_control(f.work);
  CHECK(f.position.rate_factor == 0.5);
  CHECK(!f.training.has_kept_weights());
  f.work.control.keep_weights();
  agree_on_control(f.work);
  CHECK(f.training.has_kept_weights());
  CHECK((!f.work.control.keeps_weights() && f.work.control.rate_factor() == 0.5 && !f.work.control.stopping()));
  f.facts.serves = true;
  CHECK_THROWS_WITH(agree_on_control(f.work), Catch::Contains("asks for another rate, but the servers"));
}

TEST_CASE("a signal that the ranks have heard ends the fit, by its name") {
  Fixture f;
  const double none[3] = {}, terminate[3] = {0, 1, 0};
  stop_at_signal(f.work, none);
  CHECK(!f.work.control.stopping());
  stop_at_signal(f.work, terminate);
  CHECK(f.work.control.stopping());
  CHECK(f.work.control.reason() == "SIGTERM");
}

TEST_CASE("an evaluation asks of a training no more than one pass over a data set does") {
  Fixture f;
  FitLoop<float> loop;
  EvaluatedTraining<float>& training = f.training;
  sk::EvaluateOptions options{.batch = 5};
  const sk::train::Scores scores = loop.evaluate(training, f.set, options);
  CHECK(scores.loss == f.trainer.evaluate(f.set, {.batch = 5}).loss);
}
