// SPDX-License-Identifier: Apache-2.0
// Trainer: fit, evaluate, predict, save and load, and what it says of data, networks and options that do not fit.
#include <catch2/catch.hpp>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <functional>
#include <limits>
#include <stdexcept>
#include <vector>

#include <skein/data/from_tensors.hpp>
#include <skein/data/map.hpp>
#include <skein/nn/batch_norm.hpp>
#include <skein/nn/dropout.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/loss/own_loss.hpp>
#include <skein/optim/adam.hpp>
#include <skein/optim/adamw.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/train/callbacks.hpp>
#include <skein/train/fit_figures.hpp>
#include <skein/train/metrics.hpp>
#include <skein/train/progress.hpp>
#include <skein/train/trainer.hpp>

#include "../support/naive_layers.hpp"
#include "../support/points.hpp"
#include "../support/stop_at.hpp"
#include "../support/temporary_folder.hpp"
#include "../support/thrown.hpp"

namespace sk = skein;
namespace nn = skein::nn;

namespace {

using Net = nn::Sequential<naive::Linear<12>, naive::Tanh, nn::Dropout<sk::Rate<1, 4>>, naive::Linear<3>>;
using Model = sk::Model<Net, sk::Shape<4>>;

struct Points : support::Points {
  Points() : support::Points(203, {1, {4}}) {}
};

auto trainer_of(Model& model) { return sk::Trainer{model, nn::CrossEntropy{}, sk::optim::Adam{.lr = 0.02f}}; }
std::vector<float> weights(const Model& m) { return {m.parameters().begin(), m.parameters().end()}; }

/// Counts epochs, stops at the second; its state goes into checkpoints.
struct Counter {
  int* seen;
  int epochs = 0;
  void on_epoch_end(sk::train::EpochRecord& r, sk::train::FitControl& c) {
    *seen = ++epochs;
    if (r.epoch == 2) c.stop("half of it");
  }
  template <class Archive> void serialize(Archive& archive, unsigned) { (archive & epochs); }
};

/// Throws behind a step; 0: behind none.
struct ThrowAt {
  std::int64_t step;
  void on_update(std::int64_t made) const {
    if (made == step) throw std::runtime_error("a callback throws");
  }
};

struct NegativeLogLikelihood {
  constexpr auto operator()(const auto& row) const { return -row.log_probability(); }
};

}  // namespace

TEST_CASE("an epoch in which no sample counts is an error, and no training", "[train]") {
  Points points;
  points.labels.assign(points.labels.size(), -1);
  Model model{sk::Seed{1}};
  sk::Trainer trainer{model, nn::CrossEntropy{.ignore_label = -1}, sk::optim::Sgd{}};
  CHECK_THROWS_WITH(trainer.fit(points.set(), {.epochs = 2, .batch = 16, .progress = false}),
                    Catch::Contains("no sample of the epoch counts"));
  points.labels[5] = 1;  // one is enough
  CHECK(trainer.fit(points.set(), {.epochs = 1, .batch = 16, .progress = false}).back().training.loss > 0);
}

TEST_CASE("a trainer that was moved from says so", "[train]") {
  Points points;
  Model model{sk::Seed{1}};
  auto first = trainer_of(model);
  auto second = std::move(first);
  const sk::FitOptions options{.epochs = 1, .batch = 16, .progress = false};
  const auto gone = Catch::Contains("was moved from, and has nothing: use the one that it was moved to");
  const support::TemporaryFolder folder;
  CHECK_THROWS_WITH(first.fit(points.set(), options), gone);
  CHECK_THROWS_WITH(first.evaluate(points.set()), gone);
  CHECK_THROWS_WITH(first.predict(points.set()), gone);
  CHECK_THROWS_WITH(first.save(folder / "training"), gone);
  CHECK_THROWS_WITH(first.load(folder / "training"), gone);
  second.fit(points.set(), options);
  first = std::move(second);
  CHECK_NOTHROW(first.fit(points.set(), options));
}

TEST_CASE("a label that a loss leaves out is no wrong label", "[train]") {
  Points points;
  for (std::size_t i = 0; i < points.labels.size(); i += 3) points.labels[i] = -1;
  const auto data = points.set();
  const sk::FitOptions quiet{.epochs = 1, .batch = 16, .progress = false};
  Model one{sk::Seed{3}}, other{sk::Seed{3}};
  sk::Trainer own{one, nn::OwnLoss{NegativeLogLikelihood{}, {.ignore_label = -1}}, sk::optim::Sgd{.lr = 0.1f}};
  sk::Trainer named{other, nn::CrossEntropy{.ignore_label = -1}, sk::optim::Sgd{.lr = 0.1f}};
  CHECK(own.fit(data, quiet).last().training.loss == Approx(named.fit(data, quiet).last().training.loss).epsilon(1e-5));
  sk::Trainer all{one, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.1f}};
  CHECK_THROWS_WITH(all.fit(data, quiet), Catch::Contains("has the label -1"));
}

TEST_CASE("accuracies and metrics are of the labels that the loss does not ignore", "[train]") {
  const sk::FitOptions quiet{
      .epochs = 1, .batch = 8, .metrics = {sk::train::Accuracy{}}, .record_steps = true, .progress = false, .threads = 2};
  for (const int ignored : {255, 1})
    for (const bool weighs : {false, true}) {
      std::vector<float> x;
      std::vector<int> labels;
      for (int i = 0; i < 24; ++i) {  // each second one is ignored, and of the others each third is wrong
        const int c = i % 4 == 0 ? 0 : 2;
        for (int k = 0; k < 3; ++k) x.push_back(k == c ? 9.0f : 0.0f);
        labels.push_back(i % 2 == 1 ? ignored : i % 6 == 4 ? 2 - c : c);
      }
      const auto data = sk::data::from_tensors(x, sk::Extents{1, {3}}, labels);
      using Same = sk::Model<nn::Linear<3, sk::NoBias>, sk::Shape<3>>;
      Same model{sk::Seed{1}};
      {
        auto w = model.modify();
        for (std::size_t i = 0; i < Same::sizes.stored; ++i) w[i] = i % sk::row_pitch(3) == i / sk::row_pitch(3) ? 1.0f : 0.0f;
      }
      const nn::CrossEntropy loss{.class_weights = weighs ? std::vector<float>{1, 2, 3} : std::vector<float>{},
                                  .ignore_label = ignored};
      sk::Trainer trainer{model, loss, sk::optim::Sgd{.lr = 1e-9f}};
      const auto scores = trainer.evaluate(data, {.metrics = {sk::train::Accuracy{}}});
      CHECK(scores.accuracy == Approx(8.0 / 12));
      CHECK(scores["accuracy"] == Approx(8.0 / 12));
      if (weighs) continue;
      sk::FitOptions options = quiet;
      options.validate = data;
      const sk::History history = trainer.fit(data, options);
      CHECK(history.back().training.accuracy == Approx(8.0 / 12));
      CHECK(history.back().validation.accuracy == Approx(8.0 / 12));
      double of_steps = 0;
      for (const auto& step : history.steps()) of_steps += step.accuracy;
      CHECK(of_steps > 1.5);  // of three: their numbers of labels differ
    }
}

TEST_CASE("a validation in which no label counts has measured nothing: no epoch of it is the best for ever", "[train]") {
  std::vector<float> x;
  std::vector<int> labels;
  for (int i = 0; i < 24; ++i) {
    for (int k = 0; k < 3; ++k) x.push_back(k == i % 3 ? 1.0f : 0.0f);
    labels.push_back(i % 3);
  }
  using Small = sk::Model<nn::Linear<3>, sk::Shape<3>>;
  const nn::CrossEntropy loss{.ignore_label = 255};
  const auto data = sk::data::from_tensors(x, sk::Extents{1, {3}}, labels),
             none = sk::data::from_tensors(x, sk::Extents{1, {3}}, std::vector<int>(24, 255));
  const auto trained = [&](bool validates) {
    Small model{sk::Seed{1}};
    sk::Trainer trainer{model, loss, sk::optim::Sgd{.lr = 0.5f}};
    sk::FitOptions options{.epochs = 4, .batch = 8, .progress = false, .threads = 1};
    options.callbacks = {sk::train::EarlyStopping{.patience = 1, .restore_best = true}};
    if (validates) options.validate = none;
    const sk::History history = trainer.fit(data, options);
    REQUIRE(history.size() == 4);
    for (const auto& epoch : history.epochs()) CHECK_FALSE(epoch.validation.measured());
    CHECK(history.best().epoch == 4);
    const std::string csv = history.csv(), last = csv.substr(csv.rfind('\n', csv.size() - 2));
    CHECK(last.find(",,,") != std::string::npos);  // no validation loss, no validation accuracy
    std::string line;
    sk::train::append_epoch(line, history.back(), 4);
    CHECK(line.find("validation") == std::string::npos);
    const auto scores = trainer.evaluate(none, {.metrics = {sk::train::Accuracy{}}});
    CHECK_FALSE(scores.measured());
    CHECK(std::isnan(*scores.find("accuracy")));
    return std::vector<float>(model.parameters().begin(), model.parameters().end());
  };
  CHECK(trained(true) == trained(false));
}

TEST_CASE("fit learns, and its history says how", "[train]") {
  Points points;
  const auto data = points.set();
  Model model{sk::Seed{3}};
  auto trainer = trainer_of(model);
  const sk::History history =
      trainer.fit(data, {.epochs = 30, .batch = 16, .validate = data, .record_steps = true, .progress = false});
  REQUIRE(history.size() == 30);
  CHECK(history.steps().size() == 30 * 13);
  CHECK(history.back().step == 30 * 13);
  CHECK(history.back().training.loss < 0.5 * history.epochs().front().training.loss);
  CHECK(history.back().validation.accuracy > 0.9);
  CHECK(history.back().epoch == 30);

  const auto scores = trainer.evaluate(data, {.metrics = {sk::train::Accuracy{}}});
  CHECK(scores.loss == Approx(history.back().validation.loss).epsilon(1e-6));
  CHECK(scores["accuracy"] == Approx(scores.accuracy));

  const auto outputs = trainer.predict(data);
  REQUIRE(outputs.extent(0) == 203);
  REQUIRE(outputs.extent(1) == 3);
  int right = 0;
  for (long i = 0; i < 203; ++i) {
    const float* row = outputs.data() + 3 * i;
    right += (row[0] >= row[1] && row[0] >= row[2] ? 0 : row[1] >= row[2] ? 1 : 2) == points.labels[static_cast<std::size_t>(i)];
  }
  CHECK(right / 203.0 == Approx(scores.accuracy));

  sk::Tensor<float, 2> x(points.x, sk::dims(203, 4));
  const auto same = trainer.predict(x);
  for (long i = 0; i < same.size(); ++i) REQUIRE(same.data()[i] == outputs.data()[i]);
}

TEST_CASE("options that would do nothing or harm are refused before a step", "[train]") {
  Points points;
  const auto data = points.set();
  Model model{sk::Seed{3}};
  const auto before = weights(model);
  auto trainer = trainer_of(model);
  const auto refused = [&](sk::FitOptions o, const char* says) {
    if (o.batch == 0) o.batch = 16;
    o.progress = false;
    CHECK_THROWS_WITH(trainer.fit(data, o), Catch::Contains(says));
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  refused({.clip_norm = -1}, "fit: .clip_norm is -1: it is the largest norm");
  refused({.clip_norm = static_cast<double>(nan)}, "fit: .clip_norm is nan");
  refused({.threads = -2}, "fit: .threads is -2");
  refused({.batch = 1000, .loader = {.last = sk::data::LastBatch::drop}},
          "loader: an epoch of the training data set has no step: LastBatch::drop (of fit: .loader.last) leaves out batches that "
          "are not full, and a batch of 1000 over all ranks is more than its 203 samples: take a smaller batch");
  refused({.schedule = [=](std::int64_t) { return nan; }}, "fit: the .schedule returns nan for step 1");
  refused({.schedule = [](std::int64_t step) { return step < 10 ? 1.0f : -1.0f; }}, "fit: the .schedule returns -1 for step 11");
  refused({.schedule = [](std::int64_t) { return -1.0f; }}, "fit: the .schedule returns -1 for step 1");
  refused(
      {.callbacks = {sk::train::EarlyStopping{.watch = sk::train::highest("acuracy")}}},
      "fit: EarlyStopping watches 'acuracy', which this fit does not measure; the training, as there is no .validate set, has "
      "'loss', 'accuracy': name one");
  refused({.validate = data,
           .metrics = {sk::train::TopK{2}},
           .callbacks = {sk::train::EarlyStopping{.watch = sk::train::highest("top-3")}}},
          "the validation has 'loss', 'accuracy', 'top-2': name one");
  CHECK_THROWS_WITH(trainer.evaluate(data, {.batch = -5}), Catch::Contains("evaluate: .batch is -5"));
  CHECK(weights(model) == before);
}

TEST_CASE("a number of epochs that is but a bound takes no memory", "[train]") {
  Points points;
  Model model{sk::Seed{3}};
  auto trainer = trainer_of(model);
  const sk::History history = trainer.fit(points.set(), {.epochs = std::numeric_limits<int>::max(),
                                                         .batch = 16,
                                                         .callbacks = {support::StopAt{20}},
                                                         .record_steps = true,
                                                         .progress = false,
                                                         .threads = 1});
  CHECK(history.steps().size() == 20);
  CHECK(history.size() == 1);
  CHECK(sk::train::detail::epochs_in_all(2, std::numeric_limits<int>::max()) == std::numeric_limits<int>::max());
}

TEST_CASE("metrics need a validation set, and names that differ", "[train]") {
  Points points;
  const auto data = points.set();
  Model model{sk::Seed{3}};
  auto trainer = trainer_of(model);
  CHECK_THROWS_WITH(trainer.fit(data, {.batch = 16, .metrics = {sk::train::Accuracy{}}, .progress = false}),
                    Catch::StartsWith("fit: .metrics are of the validation, and no .validate set is given"));
  CHECK_THROWS_WITH(trainer.fit(data, {.batch = 16,
                                       .validate = data,
                                       .metrics = {sk::train::Accuracy{}, sk::train::TopK{2}, sk::train::Accuracy{}},
                                       .progress = false}),
                    Catch::Contains("two metrics of .metrics have the name 'accuracy'"));
  CHECK_THROWS_WITH(trainer.evaluate(data, {.metrics = {sk::train::F1{}, sk::train::F1{}}}), Catch::Contains("'F1'"));
  const sk::train::OwnMetric nameless{"", [](std::span<const float> output, int) { return output[0]; }};
  CHECK_THROWS_WITH(trainer.evaluate(data, {.metrics = {sk::train::Accuracy{}, nameless}}),
                    Catch::Contains("metric 2 of the 2 in .metrics has no name"));
  const auto before = weights(model);  // what is of the wrong kind is found before the first step, not after an epoch
  const sk::train::OwnMetric of_targets{"close", [](std::span<const float> output, std::span<const float>) { return output[0]; }};
  CHECK_THROWS_WITH(
      trainer.fit(data, {.batch = 16, .validate = data, .metrics = {sk::train::Accuracy{}, of_targets}, .progress = false}),
      Catch::StartsWith("metric 'close' is for target values, and these samples have class labels: take Accuracy"));
  CHECK(weights(model) == before);
}

TEST_CASE("threads and executors do not change the curve, dropout included", "[train]") {
  Points points;
  const auto data = points.set();
  std::vector<std::vector<double>> curves;
  for (int threads : {1, 3})
    for (auto execution : {sk::Execution::layer_wise, sk::Execution::depth_first}) {
      Model model{sk::Seed{3}};
      auto trainer = trainer_of(model);
      curves.push_back(trainer
                           .fit(data, {.epochs = 2,
                                       .batch = 32,
                                       .record_steps = true,
                                       .progress = false,
                                       .threads = threads,
                                       .compute = {.execution = execution}})
                           .losses());
    }
  for (const auto& c : curves)
    for (std::size_t i = 0; i < c.size(); ++i) CHECK(c[i] == Approx(curves[0][i]).epsilon(1e-4));
}

TEST_CASE("a second fit goes on, a schedule and the seed have an effect", "[train]") {
  Points points;
  const auto data = points.set();
  auto run = [&](sk::FitOptions options, int fits = 1) {
    Model model{sk::Seed{3}};
    auto trainer = trainer_of(model);
    options.progress = false;
    options.threads = 1;
    sk::History h;
    for (int i = 0; i < fits; ++i) h = trainer.fit(data, options);
    CHECK(h.back().epoch == options.epochs * fits);
    return weights(model);
  };
  CHECK(run({.epochs = 1, .batch = 16}, 4) == run({.epochs = 4, .batch = 16}));
  CHECK(run({.epochs = 1, .batch = 16, .schedule = sk::optim::constant(0.1)}) != run({.epochs = 1, .batch = 16}));
  CHECK(run({.epochs = 1, .batch = 16, .seed = sk::Seed{1}}) != run({.epochs = 1, .batch = 16, .seed = sk::Seed{2}}));
  CHECK(run({.epochs = 1, .batch = 16, .loader = {.shuffle = false}}) != run({.epochs = 1, .batch = 16}));
  CHECK(run({.epochs = 1, .batch = 16, .loader = {.last = sk::data::LastBatch::drop}}) != run({.epochs = 1, .batch = 16}));
}

TEST_CASE("the records of accumulated steps count the samples of all their batches", "[train]") {
  std::vector<float> x(160);
  std::vector<int> y(160);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) - 3, y[i] = x[i] > 0;
  const auto data = sk::data::from_tensors(x, sk::Extents{1, {1}}, y);
  sk::Model<nn::Sequential<nn::Linear<2>>, sk::Shape<1>> model{sk::Seed{3}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 1e-6f}};
  const sk::History history = trainer.fit(
      data, {.epochs = 1, .batch = 32, .record_steps = true, .progress = false, .threads = 1, .step = {.accumulate = 3}});
  REQUIRE(history.steps().size() == 2);  // of three batches, and of two
  double samples = 0, right = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& s = history.steps()[i];
    CHECK(s.samples_per_second * s.seconds == Approx(i == 0 ? 96 : 64));
    samples += s.samples_per_second * s.seconds;
    right += s.accuracy * (i == 0 ? 96 : 64);
  }
  CHECK(samples == Approx(160));
  CHECK(right / 160 == Approx(history.back().training.accuracy).epsilon(1e-4));
}

TEST_CASE("a training that was saved in the middle of an epoch goes on with the same bits", "[train]") {
  Points points;
  const auto data = points.set();
  const support::TemporaryFolder folder;
  const std::string path = (folder / "training.skein");
  const sk::FitOptions options{.epochs = 4,
                               .batch = 16,
                               .validate = data,
                               .schedule = sk::optim::cosine(52),
                               .record_steps = true,
                               .progress = false,
                               .threads = 1};

  Model whole{sk::Seed{3}};
  auto reference = trainer_of(whole);
  const sk::History expected = reference.fit(data, options);

  for (const std::int64_t stop : {5, 13, 30}) {
    Model first{sk::Seed{3}};
    auto trainer = trainer_of(first);
    sk::FitOptions cut = options;
    cut.callbacks = {support::StopAt{stop}};
    trainer.fit(data, cut);
    CHECK(trainer.train_step().steps() == stop);
    trainer.save(path);

    Model second{sk::Seed{77}};
    auto resumed = trainer_of(second);
    resumed.load(path);
    const sk::History h = resumed.fit(data, options);  // the seed of the order is the file's
    CHECK(weights(second) == weights(whole));
    CHECK(h.back().training.loss == expected.back().training.loss);
    CHECK(h.back().validation.loss == expected.back().validation.loss);
  }
}

TEST_CASE("a training whose fit ended by an exception is saved and goes on with the same bits, its callbacks too", "[train]") {
  Points points;
  const support::TemporaryFolder folder;
  long served = 0, broken_at = 0;  // samples, of 203 an epoch
  const auto data = sk::data::map(points.set(), [&](std::span<float>) {
    if (++served == broken_at) throw std::runtime_error("the disk is gone");
  });
  const auto options = [&](sk::train::LearningRateLog& rates, std::int64_t throws_at) {
    sk::FitOptions o{.epochs = 4,
                     .batch = 16,
                     .callbacks = {std::ref(rates), ThrowAt{throws_at}},
                     .progress = false,
                     .threads = 1,
                     .loader = {.prefetch = sk::data::Prefetch::off},
                     .step = {.accumulate = 2}};
    return o;
  };
  Model whole{sk::Seed{3}};
  sk::train::LearningRateLog expected;
  trainer_of(whole).fit(data, options(expected, 0));
  for (const auto& [sample, step] : {std::pair{203 + 16 + 1, 0}, {203 + 32 + 5, 0}, {0, 10}}) {
    CAPTURE(sample, step);
    served = 0, broken_at = sample;
    Model first{sk::Seed{3}}, second{sk::Seed{5}};
    sk::train::LearningRateLog rates, resumed;
    auto trainer = trainer_of(first), other = trainer_of(second);
    CHECK_THROWS(trainer.fit(data, options(rates, step)));
    trainer.save(folder / "rescued.skein");
    broken_at = 0;
    other.load(folder / "rescued.skein");
    other.fit(data, options(resumed, 0));
    CHECK(weights(second) == weights(whole));
    CHECK(resumed.rates == expected.rates);  // from step 1 on
  }
}

TEST_CASE("a file that is saved before the first step of a fit has no sums of an epoch that an exception has broken off",
          "[train]") {
  Points points;
  const support::TemporaryFolder folder;
  const auto data = points.set();
  Model model{sk::Seed{3}}, second{sk::Seed{3}};
  auto trainer = trainer_of(model), other = trainer_of(second);
  CHECK_THROWS(trainer.fit(data, {.epochs = 1, .batch = 16, .callbacks = {ThrowAt{9}}, .progress = false}));
  struct Saves {
    std::function<void()> save;
    void on_epoch_begin(int, sk::train::FitControl&) const { save(); }
  };
  const sk::FitOptions options{.epochs = 1, .batch = 16, .progress = false};
  sk::FitOptions saving = options;
  saving.callbacks.add(Saves{[&] { trainer.save(folder / "begun.skein"); }});
  const double expected = trainer.fit(data, saving).back().training.loss;
  other.load(folder / "begun.skein");
  CHECK(other.fit(data, options).back().training.loss == Approx(expected));
}

TEST_CASE("a training goes on within an epoch with the samples that are left, or says why not", "[train]") {
  Points points;
  const auto data = points.set();
  const auto fewer = data.take(190);
  const support::TemporaryFolder folder;
  const std::string path = (folder / "training.skein");
  const sk::FitOptions options{.epochs = 2, .batch = 16, .progress = false, .threads = 1};
  Model whole{sk::Seed{3}};
  trainer_of(whole).fit(data, options);
  const auto stop_at = [&](std::int64_t step) {
    Model first{sk::Seed{3}};
    auto trainer = trainer_of(first);
    sk::FitOptions cut = options;
    cut.callbacks = {support::StopAt{step}};
    trainer.fit(data, cut);
    trainer.save(path);
  };
  stop_at(18);  // the fifth of 13 steps

  const auto go_on = [&](const auto& set, auto change) {
    Model second{sk::Seed{77}};  // the seed of the order is the file's
    auto resumed = trainer_of(second);
    resumed.load(path);
    sk::FitOptions rest = options;
    change(rest);
    resumed.fit(set, rest);
    return weights(second);
  };
  CHECK(go_on(data, [](sk::FitOptions&) {}) == weights(whole));
  const auto place = Catch::Contains("goes on at step 5 of its epoch 2");
  CHECK_THROWS_WITH(go_on(data, [](sk::FitOptions& o) { o.batch = 32; }),
                    place && Catch::Contains(".batch) was 16; now it is 32"));
  CHECK_THROWS_WITH(go_on(data, [](sk::FitOptions& o) { o.seed = sk::Seed{4}; }),
                    place && Catch::Contains(".seed was 3; now it is 4"));
  CHECK_THROWS_WITH(go_on(data, [](sk::FitOptions& o) { o.loader.shuffle = false; }),
                    place && Catch::Contains(".loader.shuffle was true"));
  CHECK_THROWS_WITH(go_on(data, [](sk::FitOptions& o) { o.loader.last = sk::data::LastBatch::drop; }),
                    place && Catch::Contains(".loader.last was keep"));
  CHECK_THROWS_WITH(go_on(fewer, [](sk::FitOptions&) {}), place && Catch::Contains("samples was 203; now it is 190"));

  stop_at(13);  // between two epochs another batch is another training's affair
  CHECK_NOTHROW(go_on(data, [](sk::FitOptions& o) { o.batch = 32; }));
}

TEST_CASE("the place in a file of the version before this one is read, and a forged one is refused", "[train]") {
  sk::train::TrainingPosition at;
  const auto bytes = [&](std::uint32_t version, std::int64_t epoch) {
    sk::train::OutArchive archive;
    archive& version;  // as an object begins
    for (const std::int64_t n : {std::int64_t{2}, epoch, std::int64_t{5}, std::int64_t{80}}) archive& n;
    for (const double sum : {1.5, 2.5, 3.5}) archive& sum;
    archive & true;
    return archive.take();
  };
  sk::train::from_bytes(bytes(0, 4), at, "a file", 0);
  CHECK(at.base == 2);
  CHECK(at.epoch == 4);
  CHECK(at.running);
  CHECK(at.order.batch == 0);
  CHECK_NOTHROW(sk::train::check_order(at, {.seed = 1, .batch = 32}));  // nothing is known of it
  CHECK_THROWS_WITH(sk::train::from_bytes(bytes(0, -4), at, "a file", 0), Catch::Contains("the place of the training is none"));
  CHECK_THROWS_AS(sk::train::from_bytes(bytes(5, 4), at, "a file", 0), sk::train::VersionError);
  sk::train::TrainingPosition forged;
  forged.first_step = std::numeric_limits<std::int64_t>::min();  // which no step less is a number
  CHECK_THROWS_WITH(sk::train::from_bytes(sk::train::to_bytes(forged), at, "a file", 0),
                    Catch::Contains("the place of the training is none"));
}

TEST_CASE("after load() .epochs is the total, and a fit with nothing to do is an error", "[train]") {
  Points points;
  const auto data = points.set();
  const support::TemporaryFolder folder;
  const std::string path = (folder / "training.skein"), best = (folder / "best.skein");
  const sk::FitOptions options{.epochs = 4, .batch = 16, .progress = false, .threads = 1};
  Model model{sk::Seed{3}}, whole{sk::Seed{3}};
  auto trainer = trainer_of(model);
  sk::FitOptions keeps = options;
  struct Keep {
    std::function<void()> save;
    void on_epoch_end(const sk::train::EpochRecord&, sk::train::FitControl&) { save(); }
  };
  keeps.callbacks = {Keep{[&] { trainer.save(best); }}};
  trainer.fit(data, keeps);
  trainer.save(path);
  sk::FitOptions six = options;
  six.epochs = 6;
  trainer_of(whole).fit(data, six);

  for (const std::string& file : {path, best}) {  // saved after the fit, and in its last epoch
    Model second{sk::Seed{3}};
    auto resumed = trainer_of(second);
    resumed.load(file);
    CHECK_THROWS_WITH(resumed.fit(data, {.epochs = 3, .batch = 16, .progress = false}),
                      Catch::Contains("nothing to do: 4 of 3 epochs are done") && Catch::Contains("load_weights"));
    resumed.load(file);
    CHECK_THROWS_WITH(resumed.fit(data, options), Catch::Contains("nothing to do: 4 of 4 epochs are done"));
    CHECK(weights(second) == weights(model));
    resumed.load(file);
    CHECK(resumed.fit(data, six).back().epoch == 6);
    CHECK(weights(second) == weights(whole));
  }
}

TEST_CASE("a file of another optimizer is refused with what would serve", "[train]") {
  const support::TemporaryFolder folder;
  Model model{sk::Seed{3}};
  trainer_of(model).save(folder / "adam");
  const auto other = [&](const auto& optimizer) {
    Model fresh{sk::Seed{3}};
    sk::Trainer{fresh, nn::CrossEntropy{}, optimizer}.load(folder / "adam");
  };
  const auto theirs = Catch::Contains("another optimizer (Adam and 2 arrays"), way = Catch::Contains("load_weights(path)");
  CHECK_THROWS_WITH(other(sk::optim::Sgd{}), theirs && way && Catch::Contains("(Sgd and 0)"));
  CHECK_THROWS_WITH(other(sk::optim::AdamW{}), theirs && way && Catch::Contains("(AdamW and 2)"));
  CHECK_THROWS_WITH(other(sk::optim::Adam{.amsgrad = true}),
                    way && Catch::Contains("the file has 2 arrays of state a parameter (Adam), this training's optimizer has 3"));
  CHECK_NOTHROW(other(sk::optim::Adam{.lr = 0.5f}));  // another rate is no other optimizer
}

TEST_CASE("a file of the same optimizer with another number of arrays is refused by the options that change it", "[train]") {
  const support::TemporaryFolder folder;
  Model model{sk::Seed{3}};
  sk::Trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.momentum = 0.9}}.save(folder / "sgd");
  sk::Trainer plain{model, nn::CrossEntropy{}, sk::optim::Sgd{}};
  CHECK_THROWS_WITH(plain.load(folder / "sgd"), !Catch::Contains("another optimizer") &&
                                                    Catch::Contains("1 arrays of state a parameter (Sgd), this training's "
                                                                    "optimizer has 0; .momentum to or from 0") &&
                                                    Catch::Contains("load_weights(path) takes the weights alone"));
  sk::Trainer other{model, nn::CrossEntropy{}, sk::optim::Sgd{.momentum = 0.5}};
  CHECK_NOTHROW(other.load(folder / "sgd"));
}

TEST_CASE("the weights alone are saved and read without a trainer's other state", "[train]") {
  const support::TemporaryFolder folder;
  Model model{sk::Seed{3}}, other{sk::Seed{4}};
  trainer_of(model).save_weights(folder / "weights");
  sk::train::load_weights(folder / "weights", other);
  CHECK(weights(other) == weights(model));
  Model third{sk::Seed{5}};
  CHECK_THROWS_AS(trainer_of(third).load(folder / "weights"), sk::FileError);  // no training is in it
}

TEST_CASE("callbacks go on where they were", "[train]") {
  Points points;
  const auto data = points.set();
  const support::TemporaryFolder folder;
  int seen = 0;
  Model model{sk::Seed{3}};
  auto trainer = trainer_of(model);
  sk::FitOptions options{.epochs = 4, .batch = 16, .callbacks = {Counter{&seen}}, .progress = false};
  trainer.fit(data, options);
  CHECK(seen == 2);
  trainer.save(folder / "half");
  auto resumed = trainer_of(model);
  resumed.load(folder / "half");
  CHECK(resumed.fit(data, options).size() == 4);
  CHECK(seen == 4);
  auto again = trainer_of(model);
  again.load(folder / "half");
  sk::FitOptions others = options;
  others.callbacks.add(Counter{&seen});
  CHECK_THROWS_WITH(again.fit(data, others), Catch::Contains("give fit the callbacks of the training that was saved"));
  CHECK(again.fit(data, options).back().epoch == 4);  // which goes on all the same
  CHECK(seen == 4);
}

TEST_CASE("a training that is saved after its last epoch has the states of its callbacks, each by its name", "[train]") {
  Points points;
  const auto data = points.set();
  const support::TemporaryFolder folder;
  const sk::train::ReduceOnPlateau halves{.factor = 0.5, .patience = 2, .threshold = 1e9};  // after the fourth epoch
  const auto fit = [&](Model& model, int epochs, const std::string& loads, sk::train::Callbacks callbacks) {
    auto trainer = trainer_of(model);
    if (!loads.empty()) trainer.load(folder / loads);
    trainer.fit(data, {.epochs = epochs, .batch = 16, .callbacks = std::move(callbacks), .progress = false, .threads = 1});
    trainer.save(folder / "half");
    return weights(model);
  };
  Model whole{sk::Seed{3}}, half{sk::Seed{3}}, rest{sk::Seed{4}}, other{sk::Seed{5}};
  const auto expected = fit(whole, 6, "", {halves});
  fit(half, 3, "", {halves});
  std::filesystem::copy_file(folder / "half", folder / "three");
  CHECK(fit(rest, 6, "half", {halves}) == expected);
  CHECK(fit(other, 6, "three", {sk::train::TimeLimit{.seconds = 1e9}, halves}) == expected);  // others are no error
}

TEST_CASE("weights that a callback keeps are what a file that is saved after the fit has and goes on from", "[train]") {
  Points points;
  const auto data = points.set();
  const support::TemporaryFolder folder;
  struct KeepsFirst {
    int stop;
    void on_epoch_end(const sk::train::EpochRecord& r, sk::train::FitControl& c) const {
      if (r.epoch == 1) c.keep_weights();
      if (r.epoch == stop) c.stop("enough");
    }
  };
  const auto with = [](int epochs, int stop = 0) {
    return sk::FitOptions{.epochs = epochs, .batch = 16, .callbacks = {KeepsFirst{stop}}, .progress = false, .threads = 1};
  };
  for (const int stop : {0, 2}) {  // after all epochs, or before the last
    Model first{sk::Seed{3}}, one{sk::Seed{3}}, second{sk::Seed{4}}, read{sk::Seed{5}};
    trainer_of(one).fit(data, with(1));
    auto trainer = trainer_of(first);
    trainer.fit(data, with(stop == 0 ? 2 : 5, stop));
    trainer.save(folder / "kept");
    read.load(folder / "kept");
    CHECK(weights(read) == weights(one));
    auto resumed = trainer_of(second);
    resumed.load(folder / "kept");
    CHECK(resumed.train_step().steps() == 26);  // the optimizer is that of the last step
    resumed.fit(data, with(4));
    CHECK(weights(second) == weights(one));
  }
}

TEST_CASE("a file that a callback saves has what the callbacks before it have asked for", "[train]") {
  Points points;
  const auto data = points.set();
  const support::TemporaryFolder folder;
  struct KeepsSecond {
    void on_epoch_end(const sk::train::EpochRecord& r, sk::train::FitControl& c) const {
      if (r.epoch == 2) c.keep_weights();
    }
  };
  const auto fit = [&](int epochs, const std::string& loads, const auto& first) {
    Model model{sk::Seed{3}};
    auto trainer = trainer_of(model);
    if (!loads.empty()) trainer.load(folder / loads);
    const auto saves = [&](sk::train::EpochRecord& r) { trainer.save(folder / sk::text("{}", r.epoch)); };
    trainer.fit(data, {.epochs = epochs, .batch = 16, .callbacks = {first, saves}, .progress = false, .threads = 1});
    return weights(model);
  };
  const sk::train::ReduceOnPlateau halves{.factor = 0.5, .patience = 0, .threshold = 1e9};  // from the second epoch on
  const auto slower = fit(4, "", halves);
  CHECK(fit(4, "2", halves) == slower);
  const auto kept = fit(2, "", KeepsSecond{});
  CHECK(fit(4, "2", KeepsSecond{}) == kept);
}

TEST_CASE("a signal that comes while the callbacks of a fit's end save is none of that fit", "[train]") {
  Points points;
  const support::TemporaryFolder folder;
  Model model{sk::Seed{3}};
  auto trainer = trainer_of(model);
  struct SavesAtEnd {
    std::function<void()> save;
    void on_fit_end(const sk::History&) const {
      ::raise(SIGUSR1);
      save();
    }
  };
  const auto before = std::signal(SIGUSR1, SIG_IGN);
  sk::FitOptions options{.epochs = 2, .batch = 16, .progress = false, .threads = 1, .interrupt = {.also = SIGUSR1}};
  options.callbacks.add(SavesAtEnd{[&] { trainer.save(folder / "end"); }});
  CHECK(trainer.fit(points.set(), options).size() == 2);
  std::signal(SIGUSR1, before);
  CHECK(std::filesystem::exists(folder / "end"));
}

TEST_CASE("a file of another network is refused, and changes nothing", "[train]") {
  const support::TemporaryFolder folder;
  const std::string path = (folder / "other.skein");
  sk::Model<nn::Sequential<naive::Linear<11>, naive::Tanh, nn::Dropout<>, naive::Linear<3>>, sk::Shape<4>> other{sk::Seed{3}};
  sk::Trainer writer{other, nn::CrossEntropy{}, sk::optim::Adam{}};
  writer.save(path);
  Model model{sk::Seed{3}};
  auto trainer = trainer_of(model);
  const auto before = weights(model);
  CHECK_THROWS_WITH(trainer.load(path), Catch::Contains("parameters/0.weight"));
  CHECK(weights(model) == before);
  CHECK_THROWS_AS(trainer.load((folder / "nothing")), sk::FileError);
  CHECK_THROWS_AS(trainer.save("/nowhere/at/all"), sk::FileError);
}

TEST_CASE("what does not fit is said in a sentence", "[train]") {
  Points points;
  const auto data = points.set();
  Model model{sk::Seed{3}};
  auto trainer = trainer_of(model);
  const sk::FitOptions quiet{.batch = 16, .progress = false};

  const auto wide = sk::data::from_tensors(points.x, sk::Extents{1, {203}}, std::vector<std::int32_t>(4));
  CHECK_THROWS_WITH(trainer.fit(wide, quiet), Catch::Contains("samples are Shape<203>, the model takes Shape<4>"));
  const auto vectors = sk::data::from_tensors(points.x, sk::Extents{1, {4}}, std::vector<float>(609));
  CHECK_THROWS_WITH(trainer.fit(vectors, quiet),
                    Catch::Contains("compares with class labels") && Catch::Contains("give it integers"));
  auto labels = points.labels;
  labels[200] = 3;
  const auto wrong = sk::data::from_tensors(points.x, sk::Extents{1, {4}}, labels);
  CHECK_THROWS_WITH(trainer.fit(wrong, quiet),
                    Catch::Contains("sample 200 of the training data set has the label 3") && Catch::Contains("3 outputs"));
  CHECK_THROWS_WITH(trainer.fit(data, {.batch = 16, .validate = wrong, .progress = false}),
                    Catch::Contains("sample 200 of the validation data set has the label 3"));
  CHECK_THROWS_WITH(trainer.evaluate(wrong), Catch::Contains("sample 200 of the evaluated data set has the label 3"));
  CHECK_THROWS_WITH(trainer.fit(data, {.progress = false}), Catch::Contains("no batch size"));
  CHECK_THROWS_WITH(trainer.fit(data, {.batch = 4, .progress = false, .loader = {.batch_per_rank = 4}}),
                    Catch::Contains("keep one of them"));
  CHECK_THROWS_WITH(trainer.fit({}, quiet), Catch::Contains("the training data set is missing"));
  const auto none = data.slice(0, 0);
  CHECK_THROWS_WITH(trainer.fit(none, quiet), Catch::Contains("the training data set has no samples"));
  CHECK_THROWS_WITH(trainer.fit(data, {.batch = 16, .validate = none, .progress = false}),
                    Catch::Contains("the validation data set has no samples"));
  CHECK_THROWS_WITH(trainer.fit(data, {.batch = 4, .progress = false, .step = {.accumulate = 0}}),
                    Catch::Contains(".accumulate"));

  sk::Trainer regression{model, nn::Mse{}, sk::optim::Sgd{}};
  CHECK_THROWS_WITH(regression.fit(data, quiet), Catch::Contains("class labels, as integers are: give it floats"));
  const auto narrow = sk::data::from_tensors(points.x, sk::Extents{1, {4}}, std::vector<float>(203));
  CHECK_THROWS_WITH(regression.fit(narrow, quiet), Catch::Contains("has 1 values, the network gives 3"));
}

TEST_CASE("the extents of samples are compared with the model's, not their count") {
  using Images = sk::nn::Sequential<naive::Flatten, naive::Linear<3>>;
  sk::Model<Images, sk::Shape<8, 8, 3>> model{sk::Seed{1}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{}};
  const sk::FitOptions quiet{.batch = 2, .progress = false};
  const std::vector<float> x(2 * 192);
  const std::vector<std::int32_t> y{0, 2};
  const auto of = [&](sk::Extents sample) { return sk::data::from_tensors(x, sample, y); };
  CHECK_NOTHROW(trainer.fit(of({3, {8, 8, 3}}), quiet));
  CHECK_NOTHROW(trainer.fit(of({4, {8, 8, 3, 1}}), quiet));  // the same but for an extent of 1
  CHECK_THROWS_WITH(
      trainer.fit(of({3, {3, 8, 8}}), quiet),
      Catch::Contains("the training data set's samples are Shape<3, 8, 8>, the model takes Shape<8, 8, 3>: images are "
                      "(height, width, channels)"));
  CHECK_THROWS_WITH(
      trainer.fit(of({1, {192}}), quiet),
      Catch::Contains("samples are Shape<192>, the model takes Shape<8, 8, 3>: if the values are in that order, say "
                      "so: from_tensors(x, sk::Extents{...}, y) with the extents 8 x 8 x 3"));
  CHECK_THROWS_WITH(trainer.fit(of({3, {8, 8, 3}}), {.batch = 2, .validate = of({1, {192}}), .progress = false}),
                    Catch::Contains("the validation data set's samples are Shape<192>"));
  CHECK_THROWS_WITH(trainer.predict(of({2, {64, 3}})), Catch::Contains("the predicted data set's samples are Shape<64, 3>"));

  sk::Model<naive::Linear<3>, sk::Shape<192>> flat{sk::Seed{1}};  // reads the values of any extents in their order
  sk::Trainer reader{flat, nn::CrossEntropy{}, sk::optim::Sgd{}};
  CHECK_NOTHROW(reader.fit(of({3, {8, 8, 3}}), quiet));
}

TEST_CASE("options keep a validation set that is made in place") {
  const Points points;
  const auto train = points.set();
  sk::Model<naive::Linear<3>, sk::Shape<4>> model{sk::Seed{3}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.1f}};
  const sk::FitOptions options{.batch = 16, .validate = points.set(), .progress = false};
  const sk::FitOptions copy = options;
  const sk::History history = trainer.fit(train, copy);
  CHECK(history.back().validation.loss == trainer.evaluate(train).loss);
}

TEST_CASE("A last batch of one sample in front of a BatchNorm ends a fit, and may be left out", "[train]") {
  const Points points;  // 203 = 101 * 2 + 1
  sk::Model<nn::Sequential<naive::Linear<6>, nn::BatchNorm<>, naive::Linear<3>>, sk::Shape<4>> model{sk::Seed{1}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.01f}};
  const std::string text =
      support::thrown<sk::ArgumentError>([&] { trainer.fit(points.set(), {.epochs = 1, .batch = 2, .progress = false}); });
  CHECK(text.find("layer 1 (BatchNorm of 6 channels) trains on a batch of 1 sample") != std::string::npos);
  CHECK(text.find(".loader = {.last = data::LastBatch::drop}") != std::string::npos);
  sk::Trainer without{model, nn::CrossEntropy{}, sk::optim::Sgd{.lr = 0.01f}};
  CHECK_NOTHROW(
      without.fit(points.set(), {.epochs = 1, .batch = 2, .progress = false, .loader = {.last = sk::data::LastBatch::drop}}));
}
