// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include <skein/nn/loss/nll.hpp>

#include "fixtures/norm_loss_optim.hpp"
#include "support/loss_harness.hpp"

using skein::nn::Nll;
using test::LossRows;

namespace {
const std::vector<float> weights{0.5f, 1.0f, 2.0f, 0.25f, 1.5f};

std::vector<double> log_softmax(std::vector<double> x, std::size_t width) {
  for (std::size_t r = 0; r < x.size(); r += width) {
    double total = 0;
    for (std::size_t c = 0; c < width; ++c) total += std::exp(x[r + c]);
    for (std::size_t c = 0; c < width; ++c) x[r + c] -= std::log(total);
  }
  return x;
}
const LossRows<double> all{6, 5, log_softmax(test::wave(30, 0.7, 0, 3), 5), {}, {0, 3, 4, 1, 2, 3}};
const LossRows<double> some{6, 5, all.outputs, {}, {0, 3, -1, 1, -1, 3}};
}  // namespace

TEST_CASE("Nll of log-probabilities agrees with PyTorch, with weights and an ignored label too", "[loss]") {
  skein::nn::assert_loss<Nll>();
  STATIC_REQUIRE(Nll::target == skein::nn::TargetKind::label);
  test::matches_fixture(Nll{}, all, fixtures::nll_value, fixtures::nll_gradient);
  test::matches_fixture(Nll{.class_weights = weights, .ignore_label = -1}, some, fixtures::nll_all_value,
                        fixtures::nll_all_gradient);
  test::matches_differences(Nll{.class_weights = weights}, all);
}

TEST_CASE("Nll's options each change something", "[loss]") {
  CHECK(all(Nll{}).sums.loss != all(Nll{.class_weights = weights}).sums.loss);
  CHECK(all(Nll{.class_weights = weights}).sums.weight == Approx(0.5 + 0.25 + 1.5 + 1 + 2 + 0.25));
  CHECK(all(Nll{.ignore_label = 3}).sums.weight == 4);
}

TEST_CASE("Nll takes nothing from a class of weight 0 whose log-probability is minus infinity", "[loss]") {
  const double none = -std::numeric_limits<double>::infinity();
  const LossRows<double> rows{2, 3, {-0.5, -1, none, -1, -2, none}, {}, {0, 2}};
  const auto r = rows(Nll{.class_weights = {1, 1, 0}});
  CHECK(r.sums.loss == 0.5);
  CHECK(r.sums.weight == 1);
  CHECK(r.gradient == std::vector<double>{-1, 0, 0, 0, 0, 0});
}

TEST_CASE("Nll says what is wrong", "[loss]") {
  CHECK_THROWS_WITH(some(Nll{}), Catch::Contains("sample 2 has the label -1"));
  CHECK_THROWS_WITH(all(Nll{.class_weights = {1}}), "Nll has 1 class weights for 5 outputs: give it one a class, or none");
}
