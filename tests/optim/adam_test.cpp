// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>

#include <skein/optim/adam.hpp>

#include "fixtures/norm_loss_optim.hpp"
#include "support/optimizer_harness.hpp"

using skein::optim::Adam;

TEST_CASE("Adam is an aggregate with two state arrays, three with AMSGrad", "[optim]") {
  skein::optim::assert_optimizer<Adam>();
  STATIC_REQUIRE(std::is_aggregate_v<Adam>);
  CHECK(Adam{}.state_arrays() == 2);
  CHECK(Adam{.amsgrad = true}.state_arrays() == 3);
}

TEST_CASE("Adam follows PyTorch's trajectory, that of its fused form too", "[optim]") {
  test::matches_trajectory(Adam{.lr = 0.01f}, fixtures::adam_1, fixtures::adam_100);
  test::matches_trajectory(Adam{.lr = 0.01f}, fixtures::adam_fused_1, fixtures::adam_fused_100);
  test::matches_trajectory(Adam{.lr = 0.01f, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.1f, .amsgrad = true},
                           fixtures::adam_all_1, fixtures::adam_all_100);
}

TEST_CASE("Adam's pass keeps gaps, adds up workers, and does not depend on how the arena is cut", "[optim]") {
  test::keeps_the_laws(Adam{.lr = 0.01f, .weight_decay = 0.1f});
  test::keeps_the_laws(Adam{.lr = 0.01f, .weight_decay = 0.1f, .amsgrad = true});
}

TEST_CASE("Adam by its formula, in double", "[optim]") {
  const Adam adam{.lr = 0.0625f, .beta1 = 0.75, .beta2 = 0.875, .epsilon = 1e-4, .weight_decay = 0.125f};
  test::OptimizerRun<double, Adam> run(adam);
  std::vector<double> p = run.first21(), m(21, 0), v(21, 0);
  for (int t = 1; t <= 10; ++t) {
    run.step(t);
    const std::vector<double> g = test::wave(21, 0.1 * t, 0.2, 0.5);
    for (std::size_t i = 0; i < 21; ++i) {
      const double slope = g[i] + 0.125 * p[i];
      m[i] = 0.75 * m[i] + 0.25 * slope;
      v[i] = 0.875 * v[i] + 0.125 * slope * slope;
      p[i] -= 0.0625 * (m[i] / (1 - std::pow(0.75, t))) / (std::sqrt(v[i] / (1 - std::pow(0.875, t))) + 1e-4);
    }
  }
  CHECK(test::first_apart<double>(run.first21(), p, 64) == -1);
}

TEST_CASE("Each option of Adam changes the result", "[optim]") {
  const Adam base{.lr = 0.01f};
  CHECK(test::differ(base, Adam{.lr = 0.02f}));
  CHECK(test::differ(base, Adam{.lr = 0.01f, .beta1 = 0.8}));
  CHECK(test::differ(base, Adam{.lr = 0.01f, .beta2 = 0.9}));
  CHECK(test::differ(base, Adam{.lr = 0.01f, .epsilon = 1e-2}));
  CHECK(test::differ(base, Adam{.lr = 0.01f, .weight_decay = 0.1f}));
  CHECK(test::differ(base, Adam{.lr = 0.01f, .amsgrad = true}));
}

TEST_CASE("Adam's vectors and plain loops agree", "[optim]") {
  constexpr long n = 100;
  std::vector<float> p(n), g(n), m(n), v(n), top(n);
  for (std::size_t i = 0; i < n; ++i) {
    p[i] = static_cast<float>(std::sin(0.3 * static_cast<double>(i)));
    g[i] = i % 7 == 0 ? 0.0f : static_cast<float>(std::sin(0.7 * static_cast<double>(i)));
  }
  auto p2 = p, m2 = m, v2 = v, top2 = top;
  const float* gradients[] = {g.data()};
  skein::ops::AdamArguments<float> arguments;
  arguments.gradients = gradients;
  arguments.gradient_count = 1;
  arguments.end = n;
  arguments.fresh1 = 0.1f;
  arguments.beta2 = 0.99f;
  arguments.fresh2 = 0.01f;
  arguments.epsilon = 1e-8f;
  arguments.decay = 0.01f;
  arguments.shrink = 0.99f;
  arguments.rate = 0.1f;
  for (int step = 0; step < 5; ++step) {
    arguments.parameters = p.data(), arguments.first = m.data(), arguments.second = v.data(), arguments.greatest = top.data();
    skein::ops::adam<skein::Cpu>(arguments);
    arguments.parameters = p2.data(), arguments.first = m2.data(), arguments.second = v2.data(), arguments.greatest = top2.data();
    skein::ops::reference::adam(arguments);
  }
  CHECK(test::first_apart<float>(p, p2, 32) == -1);
  CHECK(test::first_apart<float>(m, m2, 8) == -1);
  CHECK(test::first_apart<float>(top, top2, 8) == -1);
}

TEST_CASE("An epsilon of Adam that float cannot have keeps gaps at 0", "[optim]") {
  test::OptimizerRun<float, Adam> run(Adam{.epsilon = 1e-60});
  run.step(1);
  CHECK(run.gaps_are_zero());
}

TEST_CASE("Adam refuses what makes no sense", "[optim]") {
  CHECK_THROWS_WITH((Adam{.beta1 = 1}.check()), "Adam{.beta1 = 1}: a running mean keeps a share from 0 up to, not including, 1");
  CHECK_THROWS_WITH((Adam{.beta2 = -0.1}.check()), Catch::Contains("Adam{.beta2"));
  CHECK_THROWS_WITH((Adam{.epsilon = 0}.check()), Catch::Contains("epsilon must be positive"));
  CHECK_THROWS_WITH((Adam{.lr = -1}.check()), Catch::Contains("the rate must not be negative"));
  CHECK_THROWS_WITH((Adam{.lr = NAN}.check()), "Adam{.lr = nan}: that is no number");
  CHECK_THROWS_WITH((Adam{.lr = INFINITY}.check()), "Adam{.lr = inf}: the rate must be finite");
  CHECK_THROWS_WITH((Adam{.weight_decay = -1}.check()), Catch::Contains("weight decay must not be negative"));
  CHECK_THROWS_WITH((Adam{.weight_decay = INFINITY}.check()),
                    "Adam{.weight_decay = inf}: it must be finite: weights would become "
                    "infinite, or not move");
  CHECK_THROWS_WITH((Adam{.epsilon = INFINITY}.check()), Catch::Contains("Adam{.epsilon = inf}: it must be finite"));
}
