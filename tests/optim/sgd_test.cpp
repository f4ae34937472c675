// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <skein/optim/sgd.hpp>

#include "fixtures/norm_loss_optim.hpp"
#include "support/optimizer_harness.hpp"

using skein::optim::Sgd;

TEST_CASE("Sgd is an aggregate that keeps state only for momentum", "[optim]") {
  skein::optim::assert_optimizer<Sgd>();
  STATIC_REQUIRE(std::is_aggregate_v<Sgd>);
  CHECK(Sgd{}.state_arrays() == 0);
  CHECK(Sgd{.momentum = 0.9f}.state_arrays() == 1);
}

TEST_CASE("Sgd follows PyTorch's trajectory", "[optim]") {
  test::matches_trajectory(Sgd{.lr = 0.05f}, fixtures::sgd_1, fixtures::sgd_100);
  test::matches_trajectory(Sgd{.lr = 0.05f, .weight_decay = 0.1f}, fixtures::sgd_decay_1, fixtures::sgd_decay_100);
  test::matches_trajectory(Sgd{.lr = 0.05f, .momentum = 0.9f}, fixtures::sgd_momentum_1, fixtures::sgd_momentum_100);
  test::matches_trajectory(Sgd{.lr = 0.05f, .momentum = 0.9f, .nesterov = true}, fixtures::sgd_nesterov_1,
                           fixtures::sgd_nesterov_100);
  test::matches_trajectory(Sgd{.lr = 0.05f, .momentum = 0.8f, .weight_decay = 0.1f, .dampening = 0.3f}, fixtures::sgd_all_1,
                           fixtures::sgd_all_100);
}

TEST_CASE("Sgd's pass keeps gaps, adds up workers, and does not depend on how the arena is cut", "[optim]") {
  test::keeps_the_laws(Sgd{.lr = 0.05f, .weight_decay = 0.1f});
  test::keeps_the_laws(Sgd{.lr = 0.05f, .momentum = 0.9, .weight_decay = 0.1f, .dampening = 0.5});
  test::keeps_the_laws(Sgd{.lr = 0.05f, .momentum = 0.9, .nesterov = true, .weight_decay = 0.1f});
}

TEST_CASE("Sgd by its formula, in double", "[optim]") {
  const Sgd sgd{.lr = 0.0625f, .momentum = 0.75, .weight_decay = 0.125f, .dampening = 0.25};
  test::OptimizerRun<double, Sgd> run(sgd);
  const std::vector<double> start = run.first21();
  std::vector<double> p = start, m(21, 0);
  for (int t = 1; t <= 10; ++t) {
    run.step(t);
    const std::vector<double> g = test::wave(21, 0.1 * t, 0.2, 0.5);
    for (std::size_t i = 0; i < 21; ++i) {
      const double slope = g[i] + 0.125 * p[i];
      m[i] = t == 1 ? slope : 0.75 * m[i] + (1 - 0.25) * slope;
      p[i] -= 0.0625 * m[i];
    }
  }
  CHECK(test::first_apart<double>(run.first21(), p) == -1);
}

TEST_CASE("Each option of Sgd changes the result", "[optim]") {
  const Sgd base{.lr = 0.05f, .momentum = 0.9};
  CHECK(test::differ(base, Sgd{.lr = 0.04f, .momentum = 0.9}));
  CHECK(test::differ(base, Sgd{.lr = 0.05f, .momentum = 0.8}));
  CHECK(test::differ(base, Sgd{.lr = 0.05f, .momentum = 0.9, .nesterov = true}));
  CHECK(test::differ(base, Sgd{.lr = 0.05f, .momentum = 0.9, .weight_decay = 0.1f}));
  CHECK(test::differ(base, Sgd{.lr = 0.05f, .momentum = 0.9, .dampening = 0.1}));
  CHECK_FALSE(test::differ(base, Sgd{.lr = 0.05f, .momentum = 0.9}));
}

TEST_CASE("Sgd refuses what makes no sense", "[optim]") {
  CHECK_THROWS_WITH(Sgd{.lr = -1}.check(), "Sgd{.lr = -1}: the rate must not be negative");
  CHECK_THROWS_WITH(Sgd{.lr = -1e-9f}.check(), "Sgd{.lr = -1e-09}: the rate must not be negative");
  CHECK_THROWS_WITH((Sgd{.nesterov = true}.check()), Catch::Contains("Nesterov's form needs a positive momentum"));
  CHECK_THROWS_WITH((Sgd{.momentum = 0.9, .nesterov = true, .dampening = 0.1}.check()),
                    Catch::Contains("needs a dampening of 0"));
  CHECK_THROWS_WITH((Sgd{.momentum = 0.9, .dampening = NAN}.check()), Catch::Contains("that is no number"));
  CHECK_THROWS_WITH((Sgd{.momentum = 0.9, .dampening = INFINITY}.check()), Catch::Contains("it must be finite"));
  CHECK_THROWS_WITH((Sgd{.dampening = 0.1}.check()), Catch::Contains("dampening does nothing without momentum"));
  CHECK_THROWS_WITH((Sgd{.momentum = -0.5}.check()), Catch::Contains("momentum must not be negative"));
  CHECK_THROWS_WITH((Sgd{.momentum = 1}.check()), Catch::Contains("momentum must be below 1: else old gradients never fade"));
  CHECK_THROWS_WITH((Sgd{.weight_decay = -0.5f}.check()), Catch::Contains("weight decay must not be negative"));
}
