// SPDX-License-Identifier: Apache-2.0
// A label for each position of a sample: a training over samples of several positions is one over as many samples of one.
#include <catch2/catch.hpp>

#include <vector>

#include <skein/comm/self/self_comm.hpp>
#include <skein/data/from_tensors.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/tanh.hpp>
#include <skein/optim/adam.hpp>
#include <skein/optim/sgd.hpp>
#include <skein/parallel/data/data_parallel.hpp>
#include <skein/parallel/data/reproducible.hpp>
#include <skein/parallel/pipeline/pipeline.hpp>
#include <skein/tensor/tensor.hpp>
#include <skein/train/metrics.hpp>
#include <skein/train/trainer.hpp>

#include "../support/own_layers.hpp"

namespace sk = skein;
namespace nn = skein::nn;
namespace parallel = skein::parallel;

namespace {
constexpr long positions = 4, classes = 3;
using First = own_layers::Squash;
using Second = nn::Sequential<own_layers::Scale, nn::Tanh>;
struct Net : nn::Sequential<own_layers::Scale, nn::Tanh> {};
using Alone = sk::Shape<classes>;
using Sequence = sk::Shape<positions, classes>;

/// 50 samples of 4 positions, or 200 of one: values are the class's noise.
struct Points {
  sk::Tensor<float, 3> x{sk::dims(50, positions, classes)};
  sk::Tensor<std::int32_t, 2> labels{sk::dims(50, positions)};
  Points() {
    for (long i = 0; i < 50 * positions; ++i) {
      const auto at = static_cast<std::uint64_t>(i);
      labels.data()[i] = static_cast<std::int32_t>(sk::random_uniform(1, 1, at) * classes);
      for (long c = 0; c < classes; ++c)
        x.data()[classes * i + c] = static_cast<float>(sk::random_uniform(1, 2, at * classes + static_cast<std::uint64_t>(c)) +
                                                       (c == labels.data()[i] ? 0.5 : 0.0));
    }
  }
  template <class Input> auto set() const {
    if constexpr (Input::rank == 2) return sk::data::from_tensors(x, labels);
    else
      return sk::data::from_tensors(std::vector<float>(x.data(), x.data() + x.size()), sk::Extents{1, {classes}},
                                    std::vector<std::int32_t>(labels.data(), labels.data() + labels.size()));
  }
};

/// Losses, accuracies and a metric of three epochs, in the order of the set; batches of 40 positions.
template <class Input, class Policy = parallel::SingleProcess> std::vector<double> numbers(Policy policy = {}, int threads = 1) {
  const Points points;
  const auto data = points.set<Input>();
  sk::Model<Net, Input> model{sk::Seed{3}};
  sk::Trainer trainer{model, nn::CrossEntropy{.class_weights = {1, 2, 1}}, sk::optim::Sgd{.lr = 0.1f}, policy};
  std::vector<double> all;
  const sk::History history = trainer.fit(data, {.epochs = 3,
                                                 .batch = 40 / static_cast<long>(Input::count / classes),
                                                 .validate = data,
                                                 .metrics = {sk::train::Accuracy{}, sk::train::TopK{2}},
                                                 .record_steps = true,
                                                 .progress = false,
                                                 .threads = threads,
                                                 .loader = {.shuffle = false}});
  for (const auto& e : history.epochs())
    for (double v : {e.training.loss, e.training.accuracy, e.validation.loss, e.validation.accuracy, e.validation["accuracy"],
                     e.validation["top-2"]})
      all.push_back(v);
  for (const auto& s : history.steps()) all.push_back(s.accuracy);
  for (const float p : model.parameters()) all.push_back(p);
  return all;
}
void same(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).epsilon(1e-5));
}
}  // namespace

TEST_CASE("A fit over samples of four labels is that over four times as many samples", "[train]") {
  const auto expected = numbers<Alone>();
  CHECK(expected[3] > 0.5);
  CHECK(expected[3] == Approx(expected[4]));  // the metric counts as the loss does
  for (int threads : {1, 2, 4}) same(numbers<Sequence>({}, threads), expected);
  sk::SelfComm self;
  same(numbers<Sequence>(parallel::DataParallel{self, parallel::Reproducible<5>{}}, 2), expected);
}

TEST_CASE("A pipeline's micro-batches carry the labels of all positions", "[train]") {
  const Points points;
  const auto data = points.set<Sequence>();
  const auto losses = [&](auto& model, auto policy) {
    sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Adam{.lr = 0.01f}, policy};
    auto all = trainer.fit(data, {.epochs = 2, .batch = 12, .record_steps = true, .progress = false, .threads = 2}).losses();
    all.push_back(trainer.evaluate(data).accuracy);
    return all;
  };
  using Pipeline = parallel::Pipeline<First, Second>;
  sk::SelfComm self;
  const Pipeline pipeline{self, {.micro_batches = 3}};
  auto staged = pipeline.model<Sequence>(sk::Seed{3});
  sk::Model<Pipeline::network, Sequence> whole{sk::Seed{3}};
  same(losses(staged, pipeline), losses(whole, parallel::SingleProcess{}));
}

TEST_CASE("A fit says how many labels it wants, and which one is wrong", "[train]") {
  Points points;
  sk::Model<Net, Sequence> model{sk::Seed{3}};
  sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Sgd{}};
  const sk::FitOptions quiet{.batch = 50, .progress = false, .loader = {.shuffle = false}};
  const auto single = sk::data::from_tensors(points.x, std::vector<std::int32_t>(50));
  CHECK_THROWS_WITH(
      trainer.fit(single, quiet),
      Catch::Contains("the training data set has 1 labels a sample, the network's output Shape<4, 3> has 4 positions"));
  sk::Model<Net, Alone> flat{sk::Seed{3}};
  sk::Trainer of_one{flat, nn::CrossEntropy{}, sk::optim::Sgd{}};
  const auto many = sk::data::from_tensors(sk::Tensor<float, 2>(sk::dims(50, 3)), points.labels);
  CHECK_THROWS_WITH(of_one.fit(many, quiet), Catch::Contains("has 4 labels a sample") && Catch::Contains("has 1 positions"));
  points.labels(17, 2) = 3;
  const auto wrong = points.set<Sequence>();
  CHECK_THROWS_WITH(
      trainer.fit(wrong, quiet),
      Catch::Contains("sample 17 of the training data set has the label 3 at position 2; the network has 3 outputs"));
}

TEST_CASE("A pipeline's first stage reads tokens", "[train]") {
  const Points points;
  sk::Tensor<std::int32_t, 2> tokens(sk::dims(50, positions));
  for (long i = 0; i < tokens.size(); ++i) tokens.data()[i] = static_cast<std::int32_t>(i * i % 7);
  const auto data = sk::data::from_tensors(tokens, points.labels);
  const auto losses = [&](auto& model, auto policy) {
    sk::Trainer trainer{model, nn::CrossEntropy{}, sk::optim::Adam{.lr = 0.01f}, policy};
    return trainer.fit(data, {.epochs = 2, .batch = 12, .record_steps = true, .progress = false, .threads = 2}).losses();
  };
  using Pipeline = parallel::Pipeline<own_layers::Embedding<7, classes>, Second>;
  sk::SelfComm self;
  const Pipeline pipeline{self, {.micro_batches = 3}};
  auto staged = pipeline.model<sk::Tokens<positions>>(sk::Seed{3});
  sk::Model<Pipeline::network, sk::Tokens<positions>> whole{sk::Seed{3}};
  same(losses(staged, pipeline), losses(whole, parallel::SingleProcess{}));
}
