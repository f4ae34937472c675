// SPDX-License-Identifier: Apache-2.0
// Metrics of one output of a graph, and a training with two inputs, two outputs and two losses from data to predictions.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <skein/data/join.hpp>
#include <skein/nn/graph.hpp>
#include <skein/nn/loss/graph_loss.hpp>
#include <skein/skein.hpp>
#include <skein/train/metrics/graph_metric.hpp>

#include "support/larger.hpp"
#include "support/temporary_folder.hpp"

namespace sk = skein;
namespace nn = skein::nn;
namespace data = skein::data;
namespace train = skein::train;

namespace graph_metric_test {
struct picture;
struct number;
struct seen;
struct known;
struct both;
struct row;
struct product;
using nn::Apply, nn::From, nn::To;
/// Which row of a picture is bright, and that row's number times another.
using Net = nn::Graph<nn::Input<picture, sk::Shape<4, 4, 1>>, nn::Input<number, sk::Shape<1>>,
                      Apply<nn::Sequential<nn::Flatten, nn::Linear<12>, nn::Relu>, From<picture>, To<seen>>,
                      Apply<nn::Sequential<nn::Linear<12>, nn::Relu>, From<number>, To<known>>,
                      Apply<nn::Multiply, From<seen, known>, To<both>>, Apply<nn::Linear<4>, From<seen>, To<row>>,
                      Apply<nn::Linear<1>, From<both>, To<product>>, nn::Output<row>, nn::Output<product>>;
using Model = sk::Model<Net, Net::input>;
using OneOutput = nn::Graph<nn::Input<picture, sk::Shape<4, 4, 1>>,
                            Apply<nn::Sequential<nn::Flatten, nn::Linear<4>>, From<picture>, To<row>>, nn::Output<row>>;
using Yes = nn::Graph<nn::Input<picture, sk::Shape<4, 4, 1>>,
                      Apply<nn::Sequential<nn::Flatten, nn::Linear<2>, nn::Sigmoid>, From<picture>, To<row>>, nn::Output<row>>;
using Two = nn::Graph<nn::Input<picture, sk::Shape<4, 4, 1>>,
                      Apply<nn::Sequential<nn::Flatten, nn::Linear<3>, nn::Softmax>, From<picture>, To<row>>,
                      Apply<nn::Sequential<nn::Flatten, nn::Linear<1>, nn::Sigmoid>, From<picture>, To<known>>,
                      Apply<nn::Sequential<nn::Flatten, nn::Linear<1>>, From<picture>, To<product>>, nn::Output<row>,
                      nn::Output<known>, nn::Output<product>>;
struct Unlikely {
  constexpr auto operator()(const auto& row) const { return -row.log_probability(); }
};
using OneModel = sk::Model<OneOutput, OneOutput::input>;
}  // namespace graph_metric_test
using namespace graph_metric_test;

namespace {
auto samples(int n) {
  std::vector<float> pictures, numbers, products;
  std::vector<int> rows;
  for (int i = 0; i < n; ++i) {
    const auto at = static_cast<std::uint64_t>(i);
    const int bright = i % 4;
    const float number = sk::random_uniform(5, 0, at);
    for (int p = 0; p < 16; ++p)
      pictures.push_back((p / 4 == bright ? 1.0f : 0.0f) +
                         0.1f * sk::random_uniform(5, 1, at * 16 + static_cast<std::uint64_t>(p)));
    rows.push_back(bright);
    numbers.push_back(number);
    products.push_back(number * static_cast<float>(bright));
  }
  return data::join(data::from_tensors(pictures, sk::Extents{3, {4, 4, 1}}, rows),
                    data::from_tensors(numbers, sk::Extents{1, {1}}, products));
}
auto loss_of() { return nn::graph_loss<Model>(nn::on<row>(nn::CrossEntropy{}), nn::on<product>(nn::Mse{}, 0.5)); }
}  // namespace

TEST_CASE("a metric of one output sees its columns alone", "[train]") {
  const auto loss = loss_of();
  auto accuracy = train::metric_on<row>(loss, train::Accuracy{}, "row");
  auto error = train::metric_on<product>(loss, train::MeanAbsoluteError{}, "product");
  const std::vector<float> outputs{0, 3, 1, 0, 0.5f, -1, -1, -1,   // row 1
                                   9, 3, 1, 0, 2.5f, -1, -1, -1};  // row 0
  const std::vector<float> targets{1, 1.0f, 2, 2.0f};
  accuracy.add(train::Rows<float>{outputs.data(), 8, 2, 5}, train::Rows<float>{targets.data(), 2, 2, 2});
  error.add(train::Rows<float>{outputs.data(), 8, 2, 5}, train::Rows<float>{targets.data(), 2, 2, 2});
  CHECK(accuracy.value() == 0.5);
  CHECK(error.value() == 0.5);
  CHECK(accuracy.name() == "row accuracy");
}

TEST_CASE("a label that the loss of an output ignores does not count in its metric", "[train]") {
  const std::vector<float> outputs{0, 3, 1, 0, 0.5f, 9, 3, 1, 0, 2.5f, 9, 3, 1, 0, 2.5f};  // rows 1, 0, 0
  for (const int ignored : {3, 255}) {
    const auto loss = nn::graph_loss<Model>(nn::on<row>(nn::CrossEntropy{.ignore_label = ignored}), nn::on<product>(nn::Mse{}));
    const std::vector<float> targets{1, 1.0f, 2, 2.0f, static_cast<float>(ignored), 2.0f};
    auto accuracy = train::metric_on<row>(loss, train::Accuracy{}, "row");
    accuracy.add(train::Rows<float>{outputs.data(), 5, 3, 5}, train::Rows<float>{targets.data(), 2, 3, 2});
    CHECK(accuracy.value() == 0.5);
  }
}

TEST_CASE("a graph's loss that ignores labels has no accuracy of all samples, but a metric's", "[train]") {
  std::vector<float> pictures(16 * 8, 0.5f);
  for (std::size_t i = 0; i < 4; ++i) pictures[16 * i + 4 * i] = 4;
  for (const int other : {0, 9}) {  // the label of half of the samples
    const auto last = static_cast<float>(other);
    const auto set = data::from_tensors(pictures, sk::Extents{1, {16}}, std::vector<float>{0, 1, 2, 3, last, last, last, last});
    const auto loss =
        nn::graph_loss<OneModel>(nn::on<row>(other == 0 ? nn::CrossEntropy{} : nn::CrossEntropy{.ignore_label = other}));
    OneModel model{sk::Seed{1}};
    sk::Trainer trainer{model, loss, sk::optim::Adam{.lr = 0.1f}};
    const auto metric = train::metric_on<row>(loss, train::Accuracy{}, "row");
    const sk::History history =
        trainer.fit(set, {.epochs = 30, .batch = 8, .validate = set, .metrics = {metric}, .progress = false, .threads = 1});
    CHECK(history.back().validation.metric_value(0) == 1);
    CHECK(std::isnan(history.back().validation.accuracy) == (other == 9));
    CHECK(std::isnan(history.back().training.accuracy) == (other == 9));
  }
}

TEST_CASE("two inputs, two outputs and two losses are learnt, whatever the workers", "[train]") {
  const auto training = samples(800), test = samples(200);
  std::vector<float> first;
  for (const int threads : {1, 2, 4}) {
    Model model{sk::Seed{1}};
    const auto loss = loss_of();
    sk::Trainer trainer{model, loss, sk::optim::Adam{.lr = 0.02f}};
    const sk::History history =
        trainer.fit(training, {.epochs = 12,
                               .batch = 32,
                               .validate = test,
                               .metrics = {train::metric_on<row>(loss, train::Accuracy{}, "row"),
                                           train::metric_on<product>(loss, train::MeanAbsoluteError{}, "product")},
                               .progress = false,
                               .threads = threads});
    CHECK(history.back().validation.metric_value(0) > 0.99);
    CHECK(history.back().validation.metric_value(1) < 0.05);
    CHECK(history.back().training.loss < 0.1 * history.begin()->training.loss);
    const std::vector<float> p(model.parameters().begin(), model.parameters().end());
    if (first.empty()) first = p;
    double apart = 0;
    for (std::size_t i = 0; i < p.size(); ++i) apart = support::larger(apart, p[i] - first[i]);
    CHECK(apart < 0.05);  // 300 steps of Adam, whose sums have other roundings

    support::TemporaryFolder folder;
    trainer.save(folder / "bills.skein");
    Model other{sk::Seed{2}};
    sk::Trainer loaded{other, loss, sk::optim::Adam{}};
    loaded.load(folder / "bills.skein");
    sk::Tensor<float, 2> x(sk::dims(3, 17));
    for (long i = 0; i < 3; ++i)
      for (long c = 0; c < 17; ++c) x(i, c) = c < 16 ? (c / 4 == i + 1 ? 1.0f : 0.0f) : 0.5f;
    const auto y = loaded.predict(x);  // (3, 5)
    for (long i = 0; i < 3; ++i) {
      CHECK(y(i, i + 1) > y(i, 0));
      CHECK(y(i, 4) == Approx(0.5 * static_cast<double>(i + 1)).margin(0.15));
    }
  }
}
TEST_CASE("several ranks train a graph as one does, and a predictor reads its file", "[train]") {
  using Double = sk::Model<Net, Net::input, sk::Cpu, double>;
  const auto training = samples(90);
  const auto loss = nn::graph_loss<Double>(nn::on<row>(nn::CrossEntropy{}), nn::on<product>(nn::Mse{}, 0.5));
  auto train = [&](auto& trainer) {
    trainer.fit(training, {.epochs = 3, .batch = 12, .seed = sk::Seed{4}, .progress = false, .threads = 1});
  };
  support::TemporaryFolder folder;
  Double alone{sk::Seed{1}};
  {
    sk::Trainer trainer{alone, loss, sk::optim::Sgd{.lr = 0.05f, .momentum = 0.9}};
    train(trainer);
    trainer.save(folder / "alone.model");
  }
  for (const int ranks : {2, 3})
    sk::spawn(ranks, [&](sk::ThreadComm& world) {
      Double model{sk::Seed{static_cast<std::uint64_t>(world.rank() + 1)}};
      sk::Trainer trainer{model, loss, sk::optim::Sgd{.lr = 0.05f, .momentum = 0.9}, sk::parallel::DataParallel{world}};
      train(trainer);
      double apart = 0;
      for (std::size_t i = 0; i < model.parameters().size; ++i)
        apart = support::larger(apart, model.parameters()[i] - alone.parameters()[i]);
      if (!(apart < 1e-12)) throw sk::ArgumentError("weights are apart by " + std::to_string(apart));
    });
  Double read{sk::Seed{9}};
  sk::Predictor predictor{read};
  predictor.load(folder / "alone.model");
  sk::Tensor<double, 2> x(sk::dims(2, 17));
  for (long c = 0; c < 17; ++c) x(0, c) = x(1, c) = 0.25 * static_cast<double>(c % 3);
  sk::Predictor own{alone};
  const auto a = predictor.predict(x), b = own.predict(x);  // (2, 5)
  for (long c = 0; c < 5; ++c) {
    CHECK(a(0, c) == b(0, c));
    CHECK(a(0, c) == a(1, c));
  }
}
TEST_CASE("a data set without the targets of all losses is refused", "[train]") {
  Model model{sk::Seed{1}};
  sk::Trainer trainer{model, loss_of(), sk::optim::Adam{}};
  const auto wrong = data::from_tensors(std::vector<float>(17 * 4), sk::Extents{1, {17}}, std::vector<float>(5 * 4));
  CHECK_THROWS_WITH(trainer.fit(wrong, {.epochs = 1, .batch = 4, .progress = false}),
                    Catch::Contains("has 5 values, the losses of graph_loss compare with 2"));
}

TEST_CASE("metrics of a head over all samples are the same on three ranks as on one", "[train]") {
  const auto training = samples(90);
  const auto loss = loss_of();
  const auto evaluated = [&](auto& trainer) {
    const train::AllSamples worst{"worst", [](train::Rows<double> outputs, train::Rows<double> targets) {
                                    double most = 0;
                                    for (long i = 0; i < outputs.count; ++i)
                                      most = support::larger(most, std::abs(outputs[i][0] - targets[i][0]) + 1e-3 * double(i));
                                    return most;
                                  }};
    return trainer.evaluate(
        training, {.batch = 32,
                   .metrics = {train::metric_on<row>(loss, train::Auc{}, "row"), train::metric_on<row>(loss, train::F1{}, "row"),
                               train::metric_on<product>(loss, train::R2{}, "product"),
                               train::metric_on<product>(loss, worst, "product")}});
  };
  Model model{sk::Seed{4}};
  sk::Trainer alone{model, loss, sk::optim::Sgd{}};
  const train::Scores expected = evaluated(alone);
  CHECK(expected.metric_name(0) == "row AUC");
  CHECK(expected["product worst"] > 0.089);
  sk::spawn(3, [&](sk::ThreadComm& world) {
    Model own{sk::Seed{4}};
    sk::Trainer trainer{own, loss, sk::optim::Sgd{}, sk::parallel::DataParallel{world}};
    const train::Scores found = evaluated(trainer);
    for (int i = 0; i < 4; ++i)
      if (!(std::abs(found.metric_value(i) - expected.metric_value(i)) <= 1e-6))
        throw sk::Error(std::string(found.metric_name(i)) + " differs");
  });
}

TEST_CASE("The accuracy of a graph_loss of one output is that of its labels", "[train]") {
  std::vector<float> pictures(64 * 16), numbers(64);
  std::vector<int> rows(64);
  for (std::size_t i = 0; i < 64; ++i) {
    for (std::size_t p = 0; p < 16; ++p) pictures[i * 16 + p] = sk::random_uniform(5, 0, i * 16 + p);
    numbers[i] = static_cast<float>(rows[i] = pictures[i * 16] > 0.5f ? 1 : 3);
  }
  const sk::FitOptions options{.epochs = 3, .batch = 16, .progress = false};
  const sk::Extents picture{1, {16}};
  OneModel with{sk::Seed{1}}, alone{sk::Seed{1}};
  const auto one = data::from_tensors(pictures, picture, numbers), labelled = data::from_tensors(pictures, picture, rows);
  sk::Trainer of_graph{with, nn::graph_loss<OneModel>(nn::on<row>(nn::CrossEntropy{})), sk::optim::Adam{}};
  sk::Trainer plain{alone, nn::CrossEntropy{}, sk::optim::Adam{}};
  const auto found = of_graph.fit(one, options), wanted = plain.fit(labelled, options);
  for (std::size_t e = 0; e < 3; ++e) {
    CHECK(found.epochs()[e].training.accuracy > 0.3);
    CHECK(found.epochs()[e].training.accuracy == wanted.epochs()[e].training.accuracy);
  }
  CHECK(of_graph.evaluate(one).accuracy == plain.evaluate(labelled).accuracy);
}

TEST_CASE("a metric of an output of probabilities is refused with the threshold of logits", "[train]") {
  using YesModel = sk::Model<Yes, Yes::input>;
  YesModel model{sk::Seed{1}};
  const auto loss = nn::graph_loss<YesModel>(nn::on<row>(nn::Mse{}));
  sk::Trainer trainer{model, loss, sk::optim::Sgd{}};
  const auto set = data::from_tensors(std::vector<float>(16 * 6), sk::Extents{1, {16}}, std::vector<float>(2 * 6));
  CHECK_THROWS_WITH(trainer.evaluate(set, {.metrics = {train::metric_on<row>(loss, train::BinaryAccuracy{}, "yes")}}),
                    Catch::Contains("the metric 'yes binary accuracy' takes outputs above 0 for a yes"));
  CHECK_NOTHROW(trainer.evaluate(set, {.metrics = {train::metric_on<row>(loss, train::BinaryAccuracy{0.5}, "yes")}}));
}

TEST_CASE("a metric of one output of several hears whether that one is of probabilities", "[train]") {
  using TwoModel = sk::Model<Two, Two::input>;
  const auto loss =
      nn::graph_loss<TwoModel>(nn::on<row>(nn::OwnLoss{Unlikely{}}), nn::on<known>(nn::Mse{}), nn::on<product>(nn::Mse{}));
  // The first class is most probable in its own sample; by the softmax of the probabilities it would be in the second.
  const std::vector<float> outputs{0.5f, 0.5f, 0, 0, 0, 0.48f, 0.26f, 0.26f, 0, 0, 0, 0, 1, 0, 0};
  const std::vector<float> targets{0, 0, 0, 1, 0, 0, 2, 0, 0};
  train::AnyMetric area{train::metric_on<row>(loss, train::Auc{}, "row")};
  area.begin(5, 3);
  area.add(train::Rows<float>{outputs.data(), 5, 3, 5}, train::Rows<float>{targets.data(), 3, 3, 3});
  CHECK(area.value() == Approx((1 + 0.5 + 1) / 3));  // the second class has 0.26 in its sample, 0.5 and 0 in others

  TwoModel model{sk::Seed{1}};
  sk::Trainer trainer{model, loss, sk::optim::Sgd{}};
  const auto set = data::from_tensors(std::vector<float>(16 * 6), sk::Extents{1, {16}}, std::vector<float>(3 * 6));
  CHECK_THROWS_WITH(trainer.evaluate(set, {.metrics = {train::metric_on<known>(loss, train::BinaryAccuracy{}, "known")}}),
                    Catch::Contains("the metric 'known binary accuracy' takes outputs above 0 for a yes, and its outputs are "
                                    "probabilities"));
  CHECK_NOTHROW(trainer.evaluate(set, {.metrics = {train::metric_on<known>(loss, train::BinaryAccuracy{0.5}, "known"),
                                                   train::metric_on<product>(loss, train::BinaryAccuracy{}, "product")}}));
}

TEST_CASE("a fit with several losses names a wrong class number by its sample and its set", "[train]") {
  const auto set_with = [](int label) {
    std::vector<float> pictures(50 * 16), numbers(50), products(50);
    std::vector<int> rows(50);
    rows[37] = label;
    return data::join(data::from_tensors(pictures, sk::Extents{3, {4, 4, 1}}, rows),
                      data::from_tensors(numbers, sk::Extents{1, {1}}, products));
  };
  const auto right = set_with(3), wrong = set_with(-1);
  Model model{sk::Seed{1}};
  sk::Trainer trainer{model, loss_of(), sk::optim::Sgd{}};
  CHECK_THROWS_WITH(trainer.fit(wrong, {.batch = 10, .progress = false}),
                    Catch::Contains("sample 37 of the training data set has the label -1; the network has 4 outputs"));
  CHECK_THROWS_WITH(trainer.fit(right, {.batch = 10, .validate = wrong, .progress = false}),
                    Catch::Contains("sample 37 of the validation data set has the label -1"));
  CHECK_THROWS_WITH(trainer.evaluate(wrong), Catch::Contains("sample 37 of the evaluated data set has the label -1"));
  const auto ignoring = nn::graph_loss<Model>(nn::on<row>(nn::CrossEntropy{.ignore_label = -1}), nn::on<product>(nn::Mse{}));
  Model other{sk::Seed{1}};
  sk::Trainer lenient{other, ignoring, sk::optim::Sgd{}};
  CHECK_NOTHROW(lenient.fit(wrong, {.epochs = 1, .batch = 10, .progress = false}));
}
