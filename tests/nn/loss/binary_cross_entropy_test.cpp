// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <skein/nn/loss/binary_cross_entropy.hpp>

#include "fixtures/norm_loss_optim.hpp"
#include "support/loss_harness.hpp"

using skein::nn::BinaryCrossEntropy;
using test::LossRows;

namespace {
LossRows<double> make() {
  LossRows<double> rows{6, 5, test::wave(30, 0.7, 0, 3), test::wave(30, 0.9, 0.1), {}};
  for (double& t : rows.targets) t = (t + 1) / 2;
  return rows;
}
const LossRows<double> rows = make();
}  // namespace

TEST_CASE("BinaryCrossEntropy of logits agrees with PyTorch's BCEWithLogitsLoss", "[loss]") {
  skein::nn::assert_loss<BinaryCrossEntropy>();
  STATIC_REQUIRE(BinaryCrossEntropy::target == skein::nn::TargetKind::vector);
  test::matches_fixture(BinaryCrossEntropy{}, rows, fixtures::bce_value, fixtures::bce_gradient);
  test::matches_fixture(BinaryCrossEntropy{.positive_weight = {2.5f}}, rows, fixtures::bce_one_value, fixtures::bce_one_gradient);
  test::matches_fixture(BinaryCrossEntropy{.positive_weight = {0.5f, 1.0f, 2.0f, 0.25f, 1.5f}}, rows, fixtures::bce_each_value,
                        fixtures::bce_each_gradient);
  test::matches_differences(BinaryCrossEntropy{.positive_weight = {3.0f}}, rows);
}

TEST_CASE("BinaryCrossEntropy survives logits of any size", "[loss]") {
  const LossRows<float> extreme{1, 4, {200, -200, 1e30, -1e30}, {1, 0, 0, 1}, {}};
  const auto r = extreme(BinaryCrossEntropy{}, 1.0);
  CHECK(r.sums.loss == Approx(2e30));
  CHECK(r.gradient == std::vector<double>{0, 0, 1, -1});
}

TEST_CASE("BinaryCrossEntropy says that its weights do not fit", "[loss]") {
  CHECK_THROWS_WITH(rows(BinaryCrossEntropy{.positive_weight = {1, 2, 3}}),
                    "BinaryCrossEntropy has 3 positive weights for 5 outputs: give it none, one, or one an output");
  CHECK_THROWS_WITH(rows(BinaryCrossEntropy{.positive_weight = {-1}}),
                    Catch::Contains(".positive_weight[0] is -1: a weight is a finite number, not negative"));
}
