// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <limits>

#include <skein/nn/loss/huber.hpp>

#include "fixtures/norm_loss_optim.hpp"
#include "support/loss_harness.hpp"

using skein::nn::Huber;
using test::LossRows;

namespace {
const LossRows<double> rows{6, 5, test::wave(30, 0.7, 0, 3), test::wave(30, 1.1, 0.3, 2), {}};
}

TEST_CASE("Huber agrees with PyTorch for the default delta and another", "[loss]") {
  skein::nn::assert_loss<Huber>();
  STATIC_REQUIRE(Huber::target == skein::nn::TargetKind::vector);
  test::matches_fixture(Huber{}, rows, fixtures::huber_value, fixtures::huber_gradient);
  test::matches_fixture(Huber{.delta = 0.7}, rows, fixtures::huber_delta_value, fixtures::huber_delta_gradient);
  test::matches_differences(Huber{.delta = 0.5}, rows, 1e-5);
}

TEST_CASE("Huber does not hide a NaN in its gradient", "[loss]") {
  const LossRows<double> broken{1, 2, {std::numeric_limits<double>::quiet_NaN(), 1}, {0, 0}, {}};
  const auto r = broken(Huber{});
  CHECK(std::isnan(r.sums.loss));
  CHECK(std::isnan(r.gradient[0]));
}

TEST_CASE("Huber refuses a delta that is not positive", "[loss]") {
  CHECK_THROWS_WITH(rows(Huber{.delta = 0}), Catch::Contains("delta must be positive"));
}
