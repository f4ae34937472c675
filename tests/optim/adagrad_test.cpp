// SPDX-License-Identifier: Apache-2.0
// Adagrad and Lion: optimizers of one array.
#include <catch2/catch.hpp>

#include <skein/optim/adagrad.hpp>
#include <skein/optim/lion.hpp>

#include "fixtures/norm_loss_optim.hpp"
#include "support/optimizer_harness.hpp"

using skein::optim::Adagrad, skein::optim::Lion;

namespace {
const Adagrad every_option{.lr = 0.05f, .lr_decay = 0.02, .epsilon = 1e-3, .initial_accumulator = 0.3, .weight_decay = 0.1f};
const Lion every_beta{.lr = 0.01f, .beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1f};
}  // namespace

TEST_CASE("Adagrad follows PyTorch's trajectory, Lion the paper's", "[optim]") {
  test::matches_trajectory(Adagrad{.lr = 0.05f}, fixtures::adagrad_1, fixtures::adagrad_100);
  test::matches_trajectory(every_option, fixtures::adagrad_all_1, fixtures::adagrad_all_100);
  test::matches_trajectory(Lion{.lr = 0.01f}, fixtures::lion_1, fixtures::lion_100);
  test::matches_trajectory(every_beta, fixtures::lion_all_1, fixtures::lion_all_100);
}

TEST_CASE("The passes of Adagrad and Lion keep gaps, add up workers, and do not depend on how the arena is cut", "[optim]") {
  test::keeps_the_laws(every_option);
  test::keeps_the_laws(every_beta);
}

TEST_CASE("Vectors and plain loops agree in Adagrad and Lion; each option changes the result", "[optim]") {
  const auto agree = [](const auto& optimizer) {
    test::OptimizerRun<float, std::remove_cvref_t<decltype(optimizer)>> run(optimizer), plain(optimizer);
    for (int t = 1; t <= 5; ++t) {
      run.step(t, {}, 2);
      plain.step(t, {}, 2, 1, 1, [](const auto& call, const auto& o) { skein::ops::reference::update(o.arguments(call)); });
    }
    CHECK(test::first_apart<float>(run.parameters, plain.parameters, 16) == -1);
    CHECK(test::first_apart<float>(run.state[0], plain.state[0], 16) == -1);
  };
  agree(every_option);
  agree(every_beta);
  const Adagrad base{.lr = 0.05f};
  CHECK(test::differ(base, Adagrad{.lr = 0.05f, .lr_decay = 0.1}));
  CHECK(test::differ(base, Adagrad{.lr = 0.05f, .epsilon = 1e-2}));
  CHECK(test::differ(base, Adagrad{.lr = 0.05f, .initial_accumulator = 0.5}));
  CHECK(test::differ(base, Adagrad{.lr = 0.05f, .weight_decay = 0.1f}));
  CHECK(test::differ(Lion{}, Lion{.beta1 = 0}));
  CHECK(test::differ(Lion{.lr = 0.1f}, Lion{.lr = 0.1f, .weight_decay = 0.5f}));
}

TEST_CASE("An epsilon of Adagrad that float cannot have keeps gaps at 0", "[optim]") {
  test::OptimizerRun<float, Adagrad> run(Adagrad{.epsilon = 1e-60});
  run.step(1);
  CHECK(run.gaps_are_zero());
}

TEST_CASE("Adagrad and Lion refuse what makes no sense", "[optim]") {
  CHECK_THROWS_WITH((Adagrad{.lr_decay = -1}.check()), Catch::Contains("Adagrad{.lr_decay = -1}"));
  CHECK_THROWS_WITH((Adagrad{.epsilon = 0}.check()), Catch::Contains("epsilon must be positive"));
  CHECK_THROWS_WITH((Adagrad{.initial_accumulator = -1}.check()), Catch::Contains("a sum of squares is not negative"));
  CHECK_THROWS_WITH((Adagrad{.lr_decay = INFINITY}.check()), Catch::Contains("Adagrad{.lr_decay = inf}: it must be finite"));
  CHECK_THROWS_WITH((Adagrad{.initial_accumulator = INFINITY}.check()), Catch::Contains("it must be finite"));
  CHECK_THROWS_WITH((Adagrad{.initial_accumulator = 1e39}.check()),
                    Catch::Contains("Adagrad{.initial_accumulator = 1e+39}: single precision has no room for it"));
  CHECK_THROWS_WITH((Adagrad{.epsilon = 1e300}.check()), Catch::Contains("no room for it"));
  CHECK_NOTHROW(Adagrad{.initial_accumulator = 1e38}.check());
  CHECK_THROWS_WITH((Lion{.beta2 = 1}.check()), Catch::Contains("Lion{.beta2 = 1}"));
}
