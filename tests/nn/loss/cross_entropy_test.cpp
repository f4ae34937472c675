// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include <skein/nn/loss/cross_entropy.hpp>

#include "fixtures/norm_loss_optim.hpp"
#include "support/loss_harness.hpp"

using skein::nn::CrossEntropy;
using test::LossRows;

namespace {
const std::vector<float> weights{0.5f, 1.0f, 2.0f, 0.25f, 1.5f};
const LossRows<double> all{6, 5, test::wave(30, 0.7, 0, 3), {}, {0, 3, 4, 1, 2, 3}};
const LossRows<double> some{6, 5, test::wave(30, 0.7, 0, 3), {}, {0, 3, -1, 1, -1, 3}};

// The formula, sample by sample, in double.
double naive(const LossRows<double>& rows, double smoothing) {
  double sum = 0;
  for (long r = 0; r < rows.count; ++r) {
    double total = 0;
    const double* x = rows.outputs.data() + r * rows.width;
    for (long c = 0; c < rows.width; ++c) total += std::exp(x[c]);
    for (long c = 0; c < rows.width; ++c) {
      const double a =
          (c == rows.labels[static_cast<std::size_t>(r)] ? 1 - smoothing : 0) + smoothing / static_cast<double>(rows.width);
      sum += a * (std::log(total) - x[c]);
    }
  }
  return sum;
}
}  // namespace

TEST_CASE("CrossEntropy is a loss of labels and an aggregate of options", "[loss]") {
  skein::nn::assert_loss<CrossEntropy>();
  STATIC_REQUIRE(skein::nn::Loss<CrossEntropy>);
  STATIC_REQUIRE(CrossEntropy::target == skein::nn::TargetKind::label);
  STATIC_REQUIRE(std::is_aggregate_v<CrossEntropy>);
}

TEST_CASE("CrossEntropy with each option agrees with PyTorch", "[loss]") {
  test::matches_fixture(CrossEntropy{}, all, fixtures::ce_value, fixtures::ce_gradient);
  test::matches_fixture(CrossEntropy{.label_smoothing = 0.1}, all, fixtures::ce_smooth_value, fixtures::ce_smooth_gradient);
  test::matches_fixture(CrossEntropy{.class_weights = weights}, all, fixtures::ce_weights_value, fixtures::ce_weights_gradient);
  test::matches_fixture(CrossEntropy{.ignore_label = -1}, some, fixtures::ce_ignore_value, fixtures::ce_ignore_gradient);
  test::matches_fixture(CrossEntropy{.label_smoothing = 0.2, .class_weights = weights, .ignore_label = -1}, some,
                        fixtures::ce_all_value, fixtures::ce_all_gradient);
}

TEST_CASE("CrossEntropy's gradient is that of its loss, over widths around those of vectors", "[loss]") {
  for (const long width : {1L, 2L, 4L, 7L, 8L, 9L, 15L, 16L, 17L, 33L}) {
    LossRows<double> rows{
        3, width, test::wave(3 * width, 1.3, 0.2, 2), {}, {0, static_cast<int>(width / 2), static_cast<int>(width - 1)}};
    test::matches_differences(CrossEntropy{}, rows);
    test::matches_differences(CrossEntropy{.label_smoothing = 0.3}, rows);
    for (const double smoothing : {0.0, 0.25}) {
      CHECK(test::close<double>(rows(CrossEntropy{.label_smoothing = smoothing}).sums.loss, naive(rows, smoothing), 64));
      const LossRows<float> single{rows.count, width, rows.outputs, {}, rows.labels};
      CHECK(test::close<float>(single(CrossEntropy{.label_smoothing = smoothing}).sums.loss, naive(rows, smoothing)));
    }
  }
}

TEST_CASE("CrossEntropy's vectors and plain loops agree", "[loss]") {
  for (const long width : {3L, 8L, 10L, 16L, 31L, 100L}) {
    const long pitch = skein::row_pitch(width), count = 9;
    std::vector<float> x(static_cast<std::size_t>(count * pitch)), fast(x.size(), 7), slow(x.size(), 7),
        w(static_cast<std::size_t>(width), 0.5f);
    std::vector<std::int32_t> labels;
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(4 * std::sin(0.37 * static_cast<double>(i)));
    for (long r = 0; r < count; ++r) labels.push_back(r == 4 ? -7 : static_cast<int>(r * 5 % width));
    w[1] = 3;
    skein::ops::CrossEntropyArguments<float> arguments{x.data(), pitch, width, labels.data(), count, 0.5f, fast.data()};
    arguments.smoothing = 0.1f;
    arguments.class_weights = w.data();
    arguments.ignores = true;
    arguments.ignored = -7;
    const auto a = skein::ops::cross_entropy<skein::Cpu>(arguments);
    arguments.gradient = slow.data();
    const auto b = skein::ops::reference::cross_entropy(arguments);
    CHECK(test::close<float>(a.loss, b.loss));
    CHECK(a.weight == b.weight);
    CHECK(a.correct == b.correct);
    CHECK(test::first_apart<float>(fast, slow) == -1);
  }
}

TEST_CASE("CrossEntropy takes nothing from a class of weight 0 whose logit is minus infinity", "[loss]") {
  const float x[] = {1, 2, -std::numeric_limits<float>::infinity(), 0, 1, 2, -std::numeric_limits<float>::infinity(), 0};
  const float weights[] = {1, 1, 0};
  const std::int32_t labels[] = {0, 2};
  for (const float smoothing : {0.0f, 0.1f}) {
    skein::ops::CrossEntropyArguments<float> arguments{x, 4, 3, labels, 2, 1, nullptr};
    arguments.smoothing = smoothing;
    arguments.class_weights = weights;
    const auto a = skein::ops::cross_entropy<skein::Cpu>(arguments), b = skein::ops::reference::cross_entropy(arguments);
    CHECK(std::isfinite(b.loss));
    CHECK(test::close<float>(a.loss, b.loss));
  }
}

TEST_CASE("CrossEntropy survives logits of any size", "[loss]") {
  const LossRows<float> rows{3, 4, {1e4, -1e4, 0, 1e4, -3e38, 3e38, 0, 1, 1000, 1001, 1002, 1003}, {}, {0, 1, 3}};
  const auto r = rows(CrossEntropy{}, 1.0);
  CHECK(std::isfinite(r.sums.loss));
  for (const double g : r.gradient) CHECK(std::isfinite(g));
  CHECK(test::close<float>(r.sums.loss, std::log(2.0) + 0 + std::log(1 + std::exp(-1.0) + std::exp(-2.0) + std::exp(-3.0))));
  const LossRows<float> broken{1, 4, {0, std::numeric_limits<double>::quiet_NaN(), 0, 0}, {}, {0}};
  CHECK(std::isnan(broken(CrossEntropy{}).sums.loss));  // not hidden
}

TEST_CASE("CrossEntropy counts hits; of equal outputs the first is the answer", "[loss]") {
  const LossRows<float> rows{4, 3, {1, 3, 2, 3, 3, 1, 3, 3, 1, 0, 0, 5}, {}, {1, 0, 1, 0}};
  CHECK(rows(CrossEntropy{}).sums.correct == 2);
}

TEST_CASE("CrossEntropy leaves ignored samples out of loss, divisor, hits and gradient", "[loss]") {
  const auto r = some(CrossEntropy{.ignore_label = -1});
  CHECK(r.sums.weight == 4);
  for (long c = 0; c < 5; ++c) CHECK(r.gradient[static_cast<std::size_t>(2 * 5 + c)] == 0);
  LossRows<double> none = some;
  none.labels.assign(6, -1);
  CHECK(none(CrossEntropy{.ignore_label = -1}, 1.0).sums.weight == 0);
  CHECK(none(CrossEntropy{.ignore_label = -1}, 1.0).sums.mean() == 0);
}

TEST_CASE("CrossEntropy says what is wrong with labels and options", "[loss]") {
  CHECK_THROWS_WITH(some(CrossEntropy{}, 1.0),
                    "sample 2 has the label -1; the network has 5 outputs, so labels are 0 to 4: mend the labels, or name the "
                    "one to leave out with .ignore_label");
  LossRows<double> wrong = some;
  wrong.labels[5] = 5;
  CHECK_THROWS_WITH(wrong(CrossEntropy{.ignore_label = -1}),
                    "sample 5 has the label 5; the network has 5 outputs, so labels are 0 to 4 (or -1, which is ignored)");
  CHECK_THROWS_AS(wrong(CrossEntropy{.ignore_label = -1}, 1.0, 3), skein::ArgumentError);
  CHECK_THROWS_WITH(all(CrossEntropy{.class_weights = {1, 2}}),
                    "CrossEntropy has 2 class weights for 5 outputs: give it one a class, or none");
  CHECK_THROWS_WITH(all(CrossEntropy{.class_weights = {1, 1, -0.5f, 1, 1}}),
                    "CrossEntropy: .class_weights[2] is -0.5: a weight is a finite number, not negative");
  CHECK_THROWS_WITH(all(CrossEntropy{.class_weights = {1, 1, 1, 1, std::nanf("")}}), Catch::Contains(".class_weights[4] is nan"));
  CHECK_THROWS_WITH(all(CrossEntropy{.class_weights = {1e38f, 1e38f, 1e38f, 1e38f, 1e38f}}),
                    Catch::Contains("CrossEntropy: .class_weights[0] is 1e+38: single precision has no room"));
  CHECK_THROWS_WITH(all(CrossEntropy{.class_weights = {0, 0, 0, 0, 0}}),
                    "CrossEntropy: all .class_weights are 0, so that no sample counts: 1 is the usual weight");
  for (const double smoothing : {1.5, 1.0})
    CHECK_THROWS_WITH(all(CrossEntropy{.label_smoothing = smoothing}),
                      Catch::Contains("smoothing is a share, from 0 to 1, and with 1 nothing would be left of the label"));
}
