// SPDX-License-Identifier: Apache-2.0
// The loss of a graph's outputs: the sum of the losses of its parts, each on its own columns, by whatever workers and order.
#include <catch2/catch.hpp>

#include <cmath>
#include <string>
#include <vector>

#include <skein/nn/executor.hpp>
#include <skein/nn/fused/linear_activation.hpp>
#include <skein/nn/linear.hpp>
#include <skein/nn/loss/binary_cross_entropy.hpp>
#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/loss/graph_loss.hpp>
#include <skein/nn/loss/mse.hpp>
#include <skein/nn/tanh.hpp>

#include "../../support/larger.hpp"

namespace sk = skein;
namespace nn = skein::nn;

namespace graph_loss_test {
struct x;
struct hidden;
struct kind;
struct value;
struct yes;
using nn::Apply, nn::From, nn::To;
using Net = nn::Graph<nn::Input<x>, Apply<nn::Sequential<nn::Linear<9>, nn::Tanh>, From<x>, To<hidden>>,
                      Apply<nn::Linear<5>, From<hidden>, To<kind>>, Apply<nn::Linear<3>, From<hidden>, To<value>>,
                      Apply<nn::Linear<2>, From<hidden>, To<yes>>, nn::Output<value>, nn::Output<kind>, nn::Output<yes>>;
using Model = sk::Model<Net, sk::Shape<4>, sk::Cpu, double>;
}  // namespace graph_loss_test
using namespace graph_loss_test;

namespace {
constexpr long n = 13, in = sk::sample_pitch(sk::Extents{1, {4}}), out = sk::row_pitch(10), target_pitch = sk::row_pitch(6);

/// Rows of a class number of five, three values, and two yes or no.
struct Data {
  std::vector<double> x = std::vector<double>(n * in), targets = std::vector<double>(n * target_pitch),
                      outputs = std::vector<double>(n * out);
  Data() {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = sk::random_uniform(1, 0, i) - 0.5;
    for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = 4 * sk::random_uniform(1, 1, i) - 2;
    for (long i = 0; i < n; ++i) {
      double* t = targets.data() + i * target_pitch;
      t[0] = static_cast<double>((i * 7 + 3) % 5);
      for (long c = 1; c < 4; ++c) t[c] = sk::random_uniform(1, 2, static_cast<std::uint64_t>(i * 4 + c));
      for (long c = 4; c < 6; ++c) t[c] = static_cast<double>((i + c) % 2);
    }
  }
  sk::BatchView<double> batch() const { return {x.data(), in, nullptr, targets.data(), target_pitch, n}; }
  nn::LossCall<double, sk::Cpu> call(double* gradient, double scale) const {
    nn::LossCall<double, sk::Cpu> c;
    c.outputs = outputs.data();
    c.output_pitch = out;
    c.width = 10;
    c.targets = targets.data();
    c.target_pitch = target_pitch;
    c.count = n;
    c.scale = scale;
    c.gradient = gradient;
    return c;
  }
  /// The mean of one loss on its columns, and its gradient.
  template <class Loss> double alone(const Loss& loss, long at, long width, long target, std::vector<double>& gradient) const {
    const long pitch = sk::row_pitch(width);
    std::vector<double> y(static_cast<std::size_t>(n * pitch)), t(y);
    std::vector<std::int32_t> labels;
    gradient.assign(y.size(), 0);
    for (long i = 0; i < n; ++i) {
      for (long c = 0; c < width; ++c)
        y[static_cast<std::size_t>(i * pitch + c)] = outputs[static_cast<std::size_t>(i * out + at + c)];
      if constexpr (Loss::target == nn::TargetKind::vector)
        for (long c = 0; c < width; ++c)
          t[static_cast<std::size_t>(i * pitch + c)] = targets[static_cast<std::size_t>(i * target_pitch + target + c)];
      labels.push_back(static_cast<std::int32_t>(targets[static_cast<std::size_t>(i * target_pitch + target)]));
    }
    nn::LossCall<double, sk::Cpu> c;
    c.outputs = y.data();
    c.output_pitch = c.target_pitch = pitch;
    c.width = width;
    c.labels = labels.data();
    c.targets = t.data();
    c.count = n;
    c.gradient = gradient.data();
    c.scale = 1 / (Loss::target == nn::TargetKind::vector ? static_cast<double>(n * width) : static_cast<double>(n));
    const nn::LossSums s = loss(c);
    return s.loss * c.scale;
  }
};
auto loss_of(nn::CrossEntropy cross_entropy = {}) {
  return nn::graph_loss<Model>(nn::on<kind>(cross_entropy), nn::on<value>(nn::Mse{}, 0.25),
                               nn::on<yes>(nn::BinaryCrossEntropy{}, 3));
}
}  // namespace

TEST_CASE("a loss of a graph that takes probabilities is given those in its own columns", "[nn]") {
  Data data;
  const auto check = [&] { nn::check_batch<Model, decltype(loss_of())>(data.batch(), true); };
  CHECK_NOTHROW(check());  // the class numbers of the first column are none
  data.targets[2 * target_pitch + 5] = 2;
  CHECK_THROWS_WITH(check(), Catch::Contains("sample 2 has the target 2 for output 1; BinaryCrossEntropy takes 0 to 1"));
}

TEST_CASE("the loss of a graph is the weighted sum of the losses of its outputs", "[nn]") {
  const Data data;
  for (const nn::CrossEntropy& cross_entropy :
       {nn::CrossEntropy{}, nn::CrossEntropy{.label_smoothing = 0.1, .class_weights = {1, 2, 0.5f, 1, 3}},
        nn::CrossEntropy{.ignore_label = 3}}) {
    const auto loss = loss_of(cross_entropy);
    STATIC_REQUIRE(nn::Loss<decltype(loss_of())>);
    STATIC_REQUIRE(decltype(loss_of())::target_length == 6);
    std::vector<double> g(n * out, 7.0), of_kind, of_value, of_yes;
    const nn::LossSums sums = loss(data.call(g.data(), 1.0 / (n * 10)));
    const double wanted = data.alone(cross_entropy, 3, 5, 0, of_kind) + 0.25 * data.alone(nn::Mse{}, 0, 3, 1, of_value) +
                          3 * data.alone(nn::BinaryCrossEntropy{}, 8, 2, 4, of_yes);
    CHECK(sums.mean() == Approx(wanted).epsilon(1e-13));
    CHECK(sums.weight == loss.weight(data.call(nullptr, 1)));
    double worst = 0;
    for (long i = 0; i < n; ++i) {
      auto apart = [&](long c, double w) { worst = support::larger(worst, g[static_cast<std::size_t>(i * out + c)] - w); };
      for (long c = 0; c < 3; ++c) apart(c, 0.25 * of_value[static_cast<std::size_t>(i * 3 + c)]);
      for (long c = 0; c < 5; ++c) apart(3 + c, of_kind[static_cast<std::size_t>(i * 8 + c)]);
      for (long c = 0; c < 2; ++c) apart(8 + c, 3 * of_yes[static_cast<std::size_t>(i * 2 + c)]);
    }
    CHECK(worst < 1e-15);
  }
}

TEST_CASE("ranks compare the kinds, the weights and the ignored labels of the losses of a graph", "[nn]") {
  const auto lines = [](const nn::CrossEntropy& cross_entropy) {
    sk::NamedValues values;
    nn::describe(loss_of(cross_entropy), values);
    return values.lines();
  };
  CHECK_THAT(lines({}), Catch::Contains("the loss (loss 1 of graph_loss)\tCrossEntropy\n") &&
                            Catch::Contains("the loss (loss 2 of graph_loss)\tMse\n"));
  CHECK_THAT(lines({.ignore_label = 3}), Catch::Contains("`.ignore_label` of CrossEntropy (loss 1 of graph_loss)\t3\n"));
  CHECK_THAT(lines({.class_weights = {1, 2, 1, 1, 1}}),
             Catch::Contains("the weights of CrossEntropy (loss 1 of graph_loss)\tof hash"));
}

TEST_CASE("a network with the loss of a graph has the gradient of finite differences, by any workers", "[nn]") {
  const Data data;
  Model model{sk::Seed{3}};
  std::vector<double> first;
  for (const int threads : {1, 2, 4})
    for (const auto execution : {sk::Execution::layer_wise, sk::Execution::depth_first}) {
      sk::Executor executor{model, loss_of(), {.capacity = n + 4, .execution = execution, .block = 3, .threads = threads}};
      executor.forward_backward(data.batch());
      const std::vector<double> g(model.gradients().begin(), model.gradients().end());
      if (first.empty()) first = g;
      double apart = 0;
      for (std::size_t i = 0; i < g.size(); ++i) apart = support::larger(apart, g[i] - first[i]);
      CHECK(apart < 1e-15);
    }
  sk::Executor executor{model, loss_of(), {.capacity = n, .threads = 1}};
  double worst = 0;
  for (const auto& e : Model::program.parameters()) {
    const std::size_t i = static_cast<std::size_t>(e.offset);
    const double p = model.parameters()[i], h = 1e-5;
    model.modify()[i] = p + h;
    const double up = executor.evaluate(data.batch()).mean();
    model.modify()[i] = p - h;
    const double down = executor.evaluate(data.batch()).mean();
    model.modify()[i] = p;
    worst = support::larger(worst, (up - down) / (2 * h) - first[i]);
  }
  CHECK(worst < 1e-9);
}

TEST_CASE("a loss of a graph with the factor 0 does not count, infinite or not", "[nn]") {
  Data data;
  std::vector<double> g(n * out, 7.0), without(n * out, 7.0);
  const auto loss = nn::graph_loss<Model>(nn::on<kind>(nn::CrossEntropy{}, 0), nn::on<value>(nn::Mse{}),
                                          nn::on<yes>(nn::BinaryCrossEntropy{}, 3));
  const nn::LossSums finite = loss(data.call(without.data(), 1));
  for (long i = 0; i < n; ++i)
    for (long c = 3; c < 8; ++c) data.outputs[static_cast<std::size_t>(i * out + c)] = c == 4 ? INFINITY : -INFINITY;
  const nn::LossSums sums = loss(data.call(g.data(), 1));
  CHECK(sums.loss == finite.loss);
  CHECK(g == without);
  for (long c = 3; c < 8; ++c) CHECK(g[static_cast<std::size_t>(2 * out + c)] == 0);
}

TEST_CASE("the loss of a graph refuses a factor that is no number", "[nn]") {
  const auto with = [](double factor) {
    return nn::graph_loss<Model>(nn::on<kind>(nn::CrossEntropy{}), nn::on<value>(nn::Mse{}, factor),
                                 nn::on<yes>(nn::BinaryCrossEntropy{}));
  };
  CHECK_NOTHROW(with(-1));
  CHECK_THROWS_WITH(with(std::nan("")), Catch::Contains("graph_loss: the factor of loss 2 is nan"));
}

TEST_CASE("a target that is no class is named by its sample", "[nn]") {
  Data data;
  auto wrong = [&](double value) {
    data.targets[4 * target_pitch] = value;
    std::vector<double> g(n * out);
    try {
      (void)loss_of()(data.call(g.data(), 1));
    } catch (const sk::ArgumentError& e) { return std::string(e.what()); }
    return std::string();
  };
  CHECK(wrong(5).find("sample 4 has the label 5; the network has 5 outputs") != std::string::npos);
  CHECK(wrong(-1).find("sample 4 has the label -1") != std::string::npos);
  CHECK(wrong(1.5).find("sample 4 has the class number 1.5") != std::string::npos);
  CHECK(wrong(5e9).find("sample 4 has the class number 5000000000:") != std::string::npos);
  CHECK_FALSE(wrong(std::nan("")).empty());
  CHECK(wrong(4).empty());
}
