// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>

#include <skein/optim/rms_prop.hpp>

#include "fixtures/norm_loss_optim.hpp"
#include "support/optimizer_harness.hpp"

using skein::optim::RmsProp;

TEST_CASE("RmsProp's state follows its options", "[optim]") {
  skein::optim::assert_optimizer<RmsProp>();
  STATIC_REQUIRE(std::is_aggregate_v<RmsProp>);
  CHECK(RmsProp{}.state_arrays() == 1);
  CHECK(RmsProp{.momentum = 0.9}.state_arrays() == 2);
  CHECK(RmsProp{.centered = true}.state_arrays() == 2);
  CHECK(RmsProp{.momentum = 0.9, .centered = true}.state_arrays() == 3);
}

TEST_CASE("RmsProp follows PyTorch's trajectory", "[optim]") {
  test::matches_trajectory(RmsProp{.lr = 0.01f}, fixtures::rms_prop_1, fixtures::rms_prop_100);
  test::matches_trajectory(RmsProp{.lr = 0.01f, .alpha = 0.9, .epsilon = 1e-3, .momentum = 0.5}, fixtures::rms_prop_momentum_1,
                           fixtures::rms_prop_momentum_100);
  test::matches_trajectory(RmsProp{.lr = 0.01f, .centered = true}, fixtures::rms_prop_centered_1,
                           fixtures::rms_prop_centered_100);
  test::matches_trajectory(
      RmsProp{.lr = 0.01f, .alpha = 0.9, .epsilon = 1e-3, .momentum = 0.5, .centered = true, .weight_decay = 0.1f},
      fixtures::rms_prop_all_1, fixtures::rms_prop_all_100);
}

TEST_CASE("RmsProp's pass keeps gaps, adds up workers, and does not depend on how the arena is cut", "[optim]") {
  test::keeps_the_laws(RmsProp{.lr = 0.01f, .weight_decay = 0.1f});
  test::keeps_the_laws(RmsProp{.lr = 0.01f, .momentum = 0.5, .weight_decay = 0.1f});
  test::keeps_the_laws(RmsProp{.lr = 0.01f, .alpha = 0.9, .epsilon = 1e-3, .centered = true, .weight_decay = 0.1f});
  test::keeps_the_laws(
      RmsProp{.lr = 0.01f, .alpha = 0.9, .epsilon = 1e-3, .momentum = 0.5, .centered = true, .weight_decay = 0.1f});
}

TEST_CASE("RmsProp's vectors and plain loops agree in each of its forms", "[optim]") {
  for (int form = 0; form < 4; ++form) {
    constexpr long n = 50;
    std::vector<float> p(n), g(n), s(n), a(n), m(n);
    for (std::size_t i = 0; i < n; ++i) {
      p[i] = static_cast<float>(std::sin(0.3 * static_cast<double>(i)));
      g[i] = static_cast<float>(1.5 + std::sin(0.7 * static_cast<double>(i)));
    }
    auto p2 = p, s2 = s, a2 = a, m2 = m;
    const float* gradients[] = {g.data()};
    skein::ops::RmsPropArguments<float> arguments;
    arguments.gradients = gradients;
    arguments.gradient_count = 1;
    arguments.end = n;
    arguments.lr = 0.1f;
    arguments.alpha = 0.75f;
    arguments.fresh = 0.25f;
    arguments.epsilon = 1e-2f;
    arguments.momentum = 0.5f;
    arguments.decay = 0.01f;
    for (int step = 0; step < 5; ++step) {
      arguments.parameters = p.data(), arguments.square = s.data(), arguments.average = form & 1 ? a.data() : nullptr,
      arguments.momenta = form & 2 ? m.data() : nullptr;
      skein::ops::rms_prop<skein::Cpu>(arguments);
      arguments.parameters = p2.data(), arguments.square = s2.data(), arguments.average = form & 1 ? a2.data() : nullptr,
      arguments.momenta = form & 2 ? m2.data() : nullptr;
      skein::ops::reference::rms_prop(arguments);
    }
    CHECK(test::first_apart<float>(p, p2, 256) == -1);
    CHECK(test::first_apart<float>(s, s2, 16) == -1);
  }
}

TEST_CASE("Each option of RmsProp changes the result", "[optim]") {
  const RmsProp base{.lr = 0.01f};
  CHECK(test::differ(base, RmsProp{.lr = 0.02f}));
  CHECK(test::differ(base, RmsProp{.lr = 0.01f, .alpha = 0.9}));
  CHECK(test::differ(base, RmsProp{.lr = 0.01f, .epsilon = 1e-2}));
  CHECK(test::differ(base, RmsProp{.lr = 0.01f, .momentum = 0.5}));
  CHECK(test::differ(base, RmsProp{.lr = 0.01f, .centered = true}));
  CHECK(test::differ(base, RmsProp{.lr = 0.01f, .weight_decay = 0.1f}));
}

TEST_CASE("An epsilon of RmsProp that float cannot have keeps gaps at 0", "[optim]") {
  test::OptimizerRun<float, RmsProp> run(RmsProp{.epsilon = 1e-60});
  run.step(1);
  CHECK(run.gaps_are_zero());
}

TEST_CASE("RmsProp refuses what makes no sense", "[optim]") {
  CHECK_THROWS_WITH((RmsProp{.alpha = 1}.check()), Catch::Contains("RmsProp{.alpha = 1}"));
  CHECK_THROWS_WITH((RmsProp{.epsilon = 0}.check()), Catch::Contains("epsilon must be positive"));
  CHECK_THROWS_WITH((RmsProp{.momentum = -1}.check()), Catch::Contains("momentum must not be negative"));
  CHECK_THROWS_WITH((RmsProp{.momentum = 1.5}.check()), Catch::Contains("momentum must be below 1"));
}
