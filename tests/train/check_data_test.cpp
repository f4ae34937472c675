// SPDX-License-Identifier: Apache-2.0
// Joined data sets and a network of several inputs and outputs: sets in another order than the Inputs, or than the losses, have
// as many values, and would be trained on in silence.
#include <skein/train/check_data.hpp>

#include <array>
#include <vector>

#include <catch2/catch.hpp>

#include <skein/data/from_tensors.hpp>
#include <skein/data/join.hpp>
#include <skein/data/map.hpp>
#include <skein/nn/flatten.hpp>
#include <skein/nn/graph.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/loss/graph_loss.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/optim/state.hpp>
#include <skein/train/predictor.hpp>
#include <skein/train/trainer.hpp>
#include <skein/train/weights_file.hpp>

namespace sk = skein;
namespace nn = skein::nn;
namespace data = skein::data;

namespace check_data_test {
struct image;
struct table;
struct seen;
struct both;
struct kind;
struct parity;
struct price;
using nn::Apply, nn::From, nn::To;
struct Net : nn::Graph<nn::Input<image, sk::Shape<3, 2, 1>>, nn::Input<table, sk::Shape<2>>,
                       Apply<nn::Flatten, From<image>, To<seen>>, Apply<nn::Concatenate, From<seen, table>, To<both>>,
                       Apply<nn::Linear<5>, From<both>, To<kind>>, Apply<nn::Linear<2>, From<both>, To<parity>>,
                       Apply<nn::Linear<1>, From<both>, To<price>>, nn::Output<kind>, nn::Output<parity>, nn::Output<price>> {};
using Model = sk::Model<Net, Net::input>;
}  // namespace check_data_test
using namespace check_data_test;

namespace {
const std::vector<float> pixels(4 * 6, 0.5f), numbers{1, 2, 3, 4, 5, 6, 7, 8}, prices{1, 2, 3, 4};
const std::vector<int> kinds{0, 4, 2, 3}, parities{0, 0, 1, 1};
const sk::Extents image_of{3, {3, 2, 1}}, row_of{1, {2}};

/// Four samples with labels or values beside them.
auto images(const auto& y) { return data::from_tensors(pixels, image_of, y); }
auto rows(const auto& y) { return data::from_tensors(numbers, row_of, y); }
}  // namespace

TEST_CASE("joined data sets say what each of them gives, through splits and changes too", "[train]") {
  const auto joined = data::join(data::join(images(kinds), rows(prices)), rows(parities));
  const auto same = [](const std::vector<data::JoinedPart>& parts) {
    REQUIRE(parts.size() == 3);
    CHECK((parts[0].sample == image_of && parts[1].sample == row_of && parts[2].sample == row_of));
    CHECK(parts[0].target.kind == data::TargetKind::label);
    CHECK(parts[1].target == data::Target::vector(1));
    CHECK(parts[2].target.kind == data::TargetKind::label);
  };
  same(joined.parts());
  same(data::split(joined, 0.5).first.parts());
  same(data::DatasetView(data::map(joined, [](auto) {})).parts());
  CHECK(data::DatasetView(rows(prices)).parts().empty());
}

TEST_CASE("joined data sets in another order than the Inputs of a graph are refused", "[train]") {
  Model model{sk::Seed{1}};
  const auto loss =
      nn::graph_loss<Model>(nn::on<kind>(nn::CrossEntropy{}), nn::on<parity>(nn::CrossEntropy{}), nn::on<price>(nn::Mse{}));
  sk::Trainer trainer{model, loss, sk::optim::Sgd{}};
  const std::vector<std::array<float, 3>> targets{{0, 0, 1}, {4, 1, 2}, {2, 0, 3}, {3, 1, 4}};
  const sk::FitOptions once{.batch = 2, .progress = false};
  const auto plain = data::from_tensors(pixels, image_of);
  CHECK_NOTHROW(trainer.fit(data::join(plain, rows(targets)), once));
  CHECK_NOTHROW(trainer.fit(data::join(data::from_tensors(pixels, sk::Extents{2, {3, 2}}), rows(targets)), once));
  CHECK_NOTHROW(trainer.fit(data::from_tensors(std::vector<float>(32), sk::Extents{1, {8}}, targets), once));  // a row by hand
  const auto swapped = data::join(rows(targets), plain);
  CHECK_THROWS_WITH(trainer.fit(swapped, once),
                    Catch::Contains("the training data set joins samples of Shape<2>, Shape<3, 2, 1>, the Inputs of the "
                                    "network are Shape<3, 2, 1>, Shape<2>: join the sets in the order of the Inputs"));
  CHECK_THROWS_AS(trainer.fit(data::split(swapped, 0.5).first, once), sk::ShapeError);
  CHECK_THROWS_WITH(trainer.predict(data::join(rows(prices), plain)), Catch::Contains("the predicted data set joins samples of"));
  CHECK_THROWS_WITH(trainer.fit(data::join(data::from_tensors(pixels, sk::Extents{3, {2, 3, 1}}), rows(targets)), once),
                    Catch::Contains("joins samples of Shape<2, 3, 1>, Shape<2>"));
}

TEST_CASE("joined data sets whose targets are in another order than the losses of a graph are refused", "[train]") {
  struct Two
      : nn::Graph<
            nn::Input<image, sk::Shape<3, 2, 1>>, nn::Input<table, sk::Shape<2>>, Apply<nn::Linear<5>, From<table>, To<kind>>,
            Apply<nn::Sequential<nn::Flatten, nn::Linear<2>>, From<image>, To<parity>>, nn::Output<kind>, nn::Output<parity>> {};
  using Labels = sk::Model<Two, Two::input>;
  Labels model{sk::Seed{1}};
  const sk::FitOptions once{.batch = 2, .progress = false};
  sk::Trainer labels{model, nn::graph_loss<Labels>(nn::on<kind>(nn::CrossEntropy{}), nn::on<parity>(nn::CrossEntropy{})),
                     sk::optim::Sgd{}};
  CHECK_NOTHROW(labels.fit(data::join(images(kinds), rows(parities)), once));
  sk::Trainer mixed{model, nn::graph_loss<Labels>(nn::on<parity>(nn::Mse{}), nn::on<kind>(nn::CrossEntropy{})), sk::optim::Sgd{}};
  const std::vector<std::array<float, 2>> pairs{{0, 1}, {1, 0}, {0, 1}, {1, 0}};
  CHECK_NOTHROW(mixed.fit(data::join(images(pairs), rows(kinds)), once));
  CHECK_THROWS_WITH(
      mixed.fit(data::join(images(kinds), rows(pairs)), once),
      Catch::Contains("the targets of the training data set are a label of 5 classes, 2 values, in the order of the "
                      "joined sets; the losses of the graph_loss take 2 values, a label of 5 classes: give the losses "
                      "in the order of the sets"));
}

TEST_CASE("labels that are joined go with a graph_loss, and labels that are not with the loss itself, and the sentence says so",
          "[train]") {
  struct One : nn::Graph<nn::Input<image, sk::Shape<3, 2, 1>>, nn::Input<table, sk::Shape<2>>,
                         Apply<nn::Flatten, From<image>, To<seen>>, Apply<nn::Concatenate, From<seen, table>, To<both>>,
                         Apply<nn::Linear<5>, From<both>, To<kind>>, nn::Output<kind>> {};
  using OneHead = sk::Model<One, One::input>;
  OneHead model{sk::Seed{1}};
  const sk::FitOptions once{.batch = 2, .progress = false};
  const auto unlabelled = data::from_tensors(numbers, row_of);
  sk::Trainer plain{model, nn::CrossEntropy{}, sk::optim::Sgd{}};
  CHECK_THROWS_WITH(
      plain.fit(data::join(images(kinds), unlabelled), once),
      "the training data set is joined, and data::join makes values of the labels: graph_loss gives each part of them "
      "a loss of its own, nn::graph_loss<Model>(nn::on<output>(nn::CrossEntropy{}))");
  sk::Trainer of_graph{model, nn::graph_loss<OneHead>(nn::on<kind>(nn::CrossEntropy{})), sk::optim::Sgd{}};
  CHECK_NOTHROW(of_graph.fit(data::join(images(kinds), unlabelled), once));
  struct Single : nn::Graph<nn::Input<table, sk::Shape<2>>, Apply<nn::Linear<5>, From<table>, To<kind>>, nn::Output<kind>> {};
  using SingleModel = sk::Model<Single, Single::input>;
  SingleModel single{sk::Seed{1}};
  sk::Trainer alone{single, nn::graph_loss<SingleModel>(nn::on<kind>(nn::CrossEntropy{})), sk::optim::Sgd{}};
  CHECK_THROWS_WITH(
      alone.fit(rows(kinds), once),
      "a graph_loss compares with a row of values for each sample, and the training data set has labels that are in no "
      "row: join it with the sets of the other Inputs, data::join(pictures, numbers), or alone, data::join(set)");
  CHECK_NOTHROW(alone.fit(data::join(rows(kinds)), once));
  sk::Trainer itself{single, nn::CrossEntropy{}, sk::optim::Sgd{}};
  CHECK_NOTHROW(itself.fit(rows(kinds), once));
}

TEST_CASE("a model that was moved from is refused wherever its weights are wanted, and a data set that was is as before",
          "[train]") {
  struct Net : nn::Sequential<nn::Linear<3>> {};
  using Model = sk::Model<Net, sk::Shape<4>>;
  auto data = sk::data::from_tensors(std::vector<float>(40, 0.5f), sk::Extents{1, {4}}, std::vector<int>(10, 1));
  const auto other = std::move(data);
  Model model{sk::Seed{1}}, under{sk::Seed{1}};
  sk::Trainer of_moved{under, nn::CrossEntropy{}, sk::optim::Sgd{}};
  const Model moved{std::move(model)}, too{std::move(under)};
  const sk::FitOptions options{.epochs = 1, .batch = 5, .progress = false};
  const auto text = Catch::Contains("the model was moved from, and has nothing: use the one that it was moved to");
  CHECK_THROWS_WITH((sk::Trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{}}), text);
  CHECK_THROWS_WITH(of_moved.fit(data, options), text);
  CHECK_THROWS_WITH(sk::Predictor{model}, text);
  CHECK_THROWS_WITH((void)model.parameters(), text);
  CHECK_THROWS_WITH(model.load("/nowhere/moved.skein"), text || Catch::Contains("/nowhere"));
  CHECK_THROWS_WITH(sk::optim::BoundOptimizer(sk::optim::Sgd{}, model), text);
  Model third{sk::Seed{2}};
  sk::Trainer trainer{third, nn::CrossEntropy{}, sk::optim::Sgd{}};
  CHECK(trainer.fit(data, options).size() == 1);
  CHECK(data.size() == other.size());
}
