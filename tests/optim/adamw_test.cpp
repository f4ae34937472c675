// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>

#include <skein/optim/adamw.hpp>

#include "fixtures/norm_loss_optim.hpp"
#include "support/optimizer_harness.hpp"

using skein::optim::Adam;
using skein::optim::AdamW;

TEST_CASE("AdamW follows PyTorch's trajectory", "[optim]") {
  skein::optim::assert_optimizer<AdamW>();
  STATIC_REQUIRE(std::is_aggregate_v<AdamW>);
  test::matches_trajectory(AdamW{.lr = 0.01f, .weight_decay = 0.1f}, fixtures::adamw_1, fixtures::adamw_100);
}

TEST_CASE("AdamW takes the decay out of the weights, not out of the gradient", "[optim]") {
  CHECK(test::differ(AdamW{.lr = 0.01f, .weight_decay = 0.1f}, Adam{.lr = 0.01f, .weight_decay = 0.1f}));
  CHECK_FALSE(test::differ(AdamW{.lr = 0.01f, .weight_decay = 0}, Adam{.lr = 0.01f}));
  test::OptimizerRun<double, AdamW> run(AdamW{.lr = 0.5f, .weight_decay = 0.25f});
  test::OptimizerRun<double, Adam> plain(Adam{.lr = 0.5f});
  const std::vector<double> before = run.first21();
  run.step(1);
  plain.step(1);
  for (std::size_t i = 0; i < 21; ++i) CHECK(run.first21()[i] == Approx(plain.first21()[i] - 0.5 * 0.25 * before[i]));
}

TEST_CASE("AdamW's pass keeps gaps, adds up workers, and does not depend on how the arena is cut", "[optim]") {
  test::keeps_the_laws(AdamW{.lr = 0.01f, .weight_decay = 0.1f});
  test::keeps_the_laws(AdamW{.lr = 0.01f, .weight_decay = 0.1f, .amsgrad = true});
}

TEST_CASE("Each option of AdamW changes the result", "[optim]") {
  const AdamW base{.lr = 0.01f};
  CHECK(test::differ(base, AdamW{.lr = 0.02f}));
  CHECK(test::differ(base, AdamW{.lr = 0.01f, .beta1 = 0.8}));
  CHECK(test::differ(base, AdamW{.lr = 0.01f, .beta2 = 0.9}));
  CHECK(test::differ(base, AdamW{.lr = 0.01f, .epsilon = 1e-2}));
  CHECK(test::differ(base, AdamW{.lr = 0.01f, .weight_decay = 0.1f}));
  CHECK(test::differ(base, AdamW{.lr = 0.01f, .amsgrad = true}));
}

TEST_CASE("AdamW refuses what makes no sense, under its own name", "[optim]") {
  CHECK_THROWS_WITH((AdamW{.epsilon = -1}.check()), "AdamW{.epsilon = -1}: epsilon must be positive");
}
