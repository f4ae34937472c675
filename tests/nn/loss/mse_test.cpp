// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <skein/nn/loss/mse.hpp>

#include "fixtures/norm_loss_optim.hpp"
#include "support/loss_harness.hpp"

using skein::nn::Mse;
using test::LossRows;

TEST_CASE("Mse is the mean over all elements, as PyTorch's", "[loss]") {
  skein::nn::assert_loss<Mse>();
  STATIC_REQUIRE(Mse::target == skein::nn::TargetKind::vector);
  const LossRows<double> rows{6, 5, test::wave(30, 0.7, 0, 3), test::wave(30, 1.1, 0.3, 2), {}};
  test::matches_fixture(Mse{}, rows, fixtures::mse_value, fixtures::mse_gradient);
  test::matches_differences(Mse{}, rows);
  CHECK(rows(Mse{}).sums.weight == 30);
  CHECK(rows(Mse{}).sums.correct == 0);
}

TEST_CASE("Mse of rows with a gap and of rows without sum the same", "[loss]") {
  for (const long width : {1L, 4L, 5L, 16L, 20L}) {
    const LossRows<double> rows{7, width, test::wave(7 * width, 0.7), test::wave(7 * width, 0.9), {}};
    double sum = 0;
    for (std::size_t i = 0; i < rows.outputs.size(); ++i)
      sum += (rows.outputs[i] - rows.targets[i]) * (rows.outputs[i] - rows.targets[i]);
    CHECK(test::close<double>(rows(Mse{}).sums.loss, sum));
    test::matches_differences(Mse{}, rows);
  }
}

TEST_CASE("Mse of no samples is nothing", "[loss]") {
  CHECK(LossRows<float>{0, 5, {}, {}, {}}(Mse{}, 1.0).sums.loss == 0);
  CHECK(LossRows<float>{0, 1, {}, {}, {}}(Mse{}, 1.0).sums.weight == 0);
}
