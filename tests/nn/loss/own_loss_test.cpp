// SPDX-License-Identifier: Apache-2.0
// Losses out of their forward formula: against derivatives by hand, finite differences, the library's own losses and fixtures.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include <skein/nn/loss/cross_entropy.hpp>
#include <skein/nn/loss/huber.hpp>
#include <skein/nn/loss/nll.hpp>
#include <skein/nn/loss/own_loss.hpp>
#include <skein/skein.hpp>

#include "fixtures/own_loss.hpp"
#include "support/loss_harness.hpp"
#include "support/own_losses.hpp"

using skein::nn::OwnLoss;
using test::LossRows;

namespace {
const std::vector<float> weights{0.5f, 1.0f, 2.0f, 0.25f, 1.5f};
const LossRows<double> all{6, 5, test::wave(30, 0.7, 0, 3), {}, {0, 3, 4, 1, 2, 3}};
const LossRows<double> some{6, 5, test::wave(30, 0.7, 0, 3), {}, {0, 3, -1, 1, -1, 3}};

/// The focal loss with its derivative by hand: with p the label's probability and g(p) = d loss / d log p,
/// g = (gamma p (1 - p)^(gamma - 1) log p - (1 - p)^gamma), and d loss / d x_c = g (1[c = label] - p_c).
struct FocalByHand {
  double gamma;
  static constexpr skein::nn::TargetKind target = skein::nn::TargetKind::label;
  struct Row {
    double gamma;
    template <class R> double operator()(const R& row) const {
      double greatest = -1e300, total = 0;
      for (long c = 0; c < row.width; ++c) greatest = std::max(greatest, double(row.x[c]));
      for (long c = 0; c < row.width; ++c) total += std::exp(row.x[c] - greatest);
      const double log_p = row.x[row.label] - greatest - std::log(total), p = std::exp(log_p);
      const double factor = gamma * p * std::pow(1 - p, gamma - 1) * log_p - std::pow(1 - p, gamma);
      for (long c = 0; c < row.width; ++c) row.derivative(c, factor * ((c == row.label) - std::exp(row.x[c] - greatest) / total));
      return -std::pow(1 - p, gamma) * log_p;
    }
  };
  template <class Scalar> double weight(const skein::nn::LossCall<Scalar, skein::Cpu>& call) const { return double(call.count); }
  template <class Scalar, class Device> skein::nn::LossSums operator()(const skein::nn::LossCall<Scalar, Device>& call) const {
    return skein::nn::label_loss(call, Row{gamma});
  }
};

template <class A, class B> void same_loss(const A& a, const B& b, const LossRows<double>& rows, double scale = 0) {
  const auto one = rows(a, scale), other = rows(b, scale);
  CHECK(test::close<double>(one.sums.loss, other.sums.loss, 64));
  CHECK(one.sums.weight == other.sums.weight);
  CHECK(one.sums.correct == other.sums.correct);
  CHECK(one.weight == other.weight);
  CHECK(test::first_apart<double>(one.gradient, other.gradient, 64) == -1);
}
}  // namespace

TEST_CASE("An own loss is a loss; its targets follow from its formula", "[loss]") {
  skein::nn::assert_loss<OwnLoss<own_losses::Focal>>();
  skein::nn::assert_loss<OwnLoss<own_losses::LogCosh>>();
  STATIC_REQUIRE(OwnLoss<own_losses::Focal>::target == skein::nn::TargetKind::label);
  STATIC_REQUIRE(OwnLoss<own_losses::LogCosh>::target == skein::nn::TargetKind::vector);
  STATIC_REQUIRE(!skein::nn::RowFormula<own_losses::LogCosh>);
  STATIC_REQUIRE(!skein::nn::ElementFormula<own_losses::Focal>);
}

TEST_CASE("The focal loss agrees with its fixture, with weights and an ignored label too", "[loss]") {
  test::matches_fixture(OwnLoss{own_losses::Focal{}}, all, fixtures::focal_value, fixtures::focal_gradient);
  test::matches_fixture(OwnLoss{own_losses::Focal{.gamma = 0.5f}}, all, fixtures::focal_half_value,
                        fixtures::focal_half_gradient);
  test::matches_fixture(OwnLoss{own_losses::Focal{}, {.class_weights = weights, .ignore_label = -1}}, some,
                        fixtures::focal_all_value, fixtures::focal_all_gradient);
}

TEST_CASE("The focal loss agrees with its derivative by hand and with finite differences", "[loss]") {
  for (const long width : {2L, 5L, 8L, 17L, 33L}) {
    LossRows<double> rows{
        3, width, test::wave(3 * width, 1.3, 0.2, 2), {}, {0, static_cast<int>(width / 2), static_cast<int>(width - 1)}};
    for (const float gamma : {1.0f, 2.0f, 3.5f}) {
      same_loss(OwnLoss{own_losses::Focal{gamma}}, FocalByHand{gamma}, rows);
      test::matches_differences(OwnLoss{own_losses::Focal{gamma}}, rows);
    }
  }
}

TEST_CASE("Formulas of the library's losses give the library's losses", "[loss]") {
  const auto cross_entropy = [](const auto& row) { return -row.log_probability(); };
  same_loss(OwnLoss{cross_entropy, {.class_weights = weights}}, skein::nn::CrossEntropy{.class_weights = weights}, all);
  const auto apart = [](const auto& row) { return row.log_sum_exp() - row.at_label(); };
  same_loss(OwnLoss{apart}, skein::nn::CrossEntropy{}, all);
  const auto smooth = [](const auto& row) {  // label smoothing of 0.2: a second sum over the row
    const auto total = row.log_sum_exp();
    return total - 0.8 * row.at_label() - 0.2 / static_cast<double>(row.width()) * row.sum([](auto x) { return x; });
  };
  same_loss(OwnLoss{smooth}, skein::nn::CrossEntropy{.label_smoothing = 0.2}, all);
  const auto nll = [](const auto& row) { return -row.at_label(); };
  same_loss(OwnLoss{nll, {.class_weights = weights, .ignore_label = -1}},
            skein::nn::Nll{.class_weights = weights, .ignore_label = -1}, some);
  const auto by_hand = [](const auto& row) {  // softmax written out: a sum whose terms use the maximum
    const auto top = row.greatest();
    return log(row.sum([&](auto x) { return exp(x - top); })) + top - row.at_label();
  };
  same_loss(OwnLoss{by_hand}, skein::nn::CrossEntropy{}, all);
  const auto huber = [](auto x, auto t) {
    const auto size = abs(x - t);
    return where(size <= 0.7, size * size / 2, 0.7 * (size - 0.35));
  };
  const LossRows<double> rows{6, 5, test::wave(30, 0.7, 0, 3), test::wave(30, 1.1, 0.3, 2), {}};
  same_loss(OwnLoss{huber}, skein::nn::Huber{.delta = 0.7}, rows);
}

TEST_CASE("Terms that use what the row returned before carry its slope: hinges and a softmax of a softmax", "[loss]") {
  test::matches_differences(OwnLoss{own_losses::Hinge{}}, all);
  test::matches_differences(OwnLoss{own_losses::Nested{}}, all);
  test::matches_differences(OwnLoss{own_losses::LogCosh{}}, {6, 5, test::wave(30, 0.7, 0, 3), test::wave(30, 1.1, 0.3, 2), {}});
  const auto r = all(OwnLoss{own_losses::Hinge{}}, 1.0);
  double naive = 0;
  for (long s = 0; s < 6; ++s)
    for (long c = 0; c < 5; ++c) {
      const double* x = all.outputs.data() + 5 * s;
      const int label = all.labels[static_cast<std::size_t>(s)];
      if (c != label) naive += std::max(0.0, 1 + x[c] - x[label]);
    }
  CHECK(test::close<double>(r.sums.loss, naive, 64));
}

TEST_CASE("A formula that uses no output has no gradient; extreme logits stay finite", "[loss]") {
  const OwnLoss constant{[](const auto& row) { return static_cast<double>(row.label()); }};
  const auto r = all(constant, 1.0);
  CHECK(r.sums.loss == 0 + 3 + 4 + 1 + 2 + 3);
  CHECK(r.gradient == std::vector<double>(30, 0.0));
  const LossRows<float> rows{2, 3, {1e4, -1e4, 0, -3e4, 3e4, 0}, {}, {0, 0}};
  const auto extreme = rows(OwnLoss{own_losses::Focal{}}, 1.0);
  CHECK(extreme.sums.loss == Approx(6e4));
  CHECK(extreme.gradient == std::vector<double>{0, 0, 0, -1, 1, 0});
  const LossRows<float> broken{1, 2, {0, std::numeric_limits<double>::quiet_NaN()}, {}, {0}};
  CHECK(std::isnan(broken(OwnLoss{own_losses::Focal{}}).sums.loss));
}

TEST_CASE("An own loss says what is wrong", "[loss]") {
  CHECK_THROWS_WITH(some(OwnLoss{own_losses::Focal{}}), Catch::Contains("sample 2 has the label -1"));
  CHECK_THROWS_WITH(all(OwnLoss{own_losses::Focal{}, {.class_weights = {1}}}),
                    "OwnLoss has 1 class weights for 5 outputs: give it one a class, or none");
  const auto nested = [](const auto& row) { return row.sum([&](auto x) { return x * row.greatest(); }); };
  CHECK_THROWS_WITH(OwnLoss{nested}, Catch::Contains("or for one within a term of sum()"));
  const auto many = [](const auto& row) {
    auto sum = row.at_label();
    for (int i = 0; i < 8; ++i) sum += row.at(0);
    return sum;
  };
  CHECK_THROWS_WITH(OwnLoss{many}, Catch::Contains("more than 8 reductions"));
}

namespace {
/// Formulas with an address, which is another on each rank.
struct Pointing {
  const double* to;
  constexpr auto operator()(const auto& row) const { return row.log_probability() * *to; }
};
struct Saying : own_losses::Focal {
  double* scratch = nullptr;
  void describe(skein::NamedValues& to) const { to.add("gamma", gamma); }
};
}  // namespace

TEST_CASE("Ranks compare which loss it is, the formula's name and its numbers", "[loss]") {
  const auto lines = [](const auto& loss) {
    skein::NamedValues values;
    skein::nn::describe(loss, values);
    return values.lines();
  };
  using own_losses::Focal;
  CHECK_THAT(lines(skein::nn::Nll{}), Catch::StartsWith("the loss\tNll\n"));
  CHECK_THAT(lines(OwnLoss{Focal{}}), Catch::StartsWith("the loss\tOwnLoss\nthe formula of OwnLoss\tFocal\n"));
  CHECK(lines(OwnLoss{Focal{2}}) == lines(OwnLoss{Focal{2}}));
  CHECK(lines(OwnLoss{Focal{2}}) != lines(OwnLoss{Focal{5}}));
  CHECK(lines(OwnLoss{own_losses::Hinge{}}) != lines(OwnLoss{Focal{}}));
  CHECK(lines(OwnLoss{Saying{{2}}}) == "the loss\tOwnLoss\nthe formula of OwnLoss\tSaying\ngamma of OwnLoss\t2\n");
  const double one = 1, two = 2;
  CHECK(lines(OwnLoss{Pointing{&one}}) == lines(OwnLoss{Pointing{&two}}));
  CHECK(lines(OwnLoss{[](const auto& row) { return row.log_probability(); }}) == "the loss\tOwnLoss\nthe formula of OwnLoss\t\n");
}

namespace {
struct FocalNet : skein::nn::Sequential<skein::nn::Flatten, skein::nn::Linear<16>, skein::nn::Relu, skein::nn::Linear<10>> {};

/// Losses of the steps of a training on digits.
template <class Precision, class Loss> std::vector<double> losses(const Loss& loss, int threads) {
  const auto digits = skein::data::synthetic_digits(120, skein::Seed{1});
  skein::Model<FocalNet, skein::Shape<28, 28, 1>, skein::Cpu, Precision> model{skein::Seed{1}};
  skein::Trainer trainer{model, loss, skein::optim::Sgd{.lr = 0.1f}};
  return trainer.fit(digits, {.epochs = 2, .batch = 22, .record_steps = true, .progress = false, .threads = threads}).losses();
}
}  // namespace

TEMPLATE_TEST_CASE("A training with an own loss is that of the same loss by hand, on 1, 2 and 4 workers and in 16 bits", "[loss]",
                   float, skein::precision::bf16) {
  const std::vector<double> by_hand = losses<TestType>(FocalByHand{2}, 1);
  CHECK(by_hand.size() == 12);
  CHECK(by_hand.back() < 0.9 * by_hand.front());
  for (const int threads : {1, 2, 4}) {
    const std::vector<double> own = losses<TestType>(OwnLoss{own_losses::Focal{}}, threads);
    REQUIRE(own.size() == by_hand.size());
    // In 16 bits a rounding of the gradient may move an activation to its neighbour.
    for (std::size_t i = 0; i < own.size(); ++i)
      CHECK(own[i] == Approx(by_hand[i]).epsilon(std::is_same_v<TestType, float> ? 1e-4 : 0.02));
  }
}
