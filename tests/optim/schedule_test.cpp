// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <limits>
#include <vector>

#include <skein/optim/schedule.hpp>

#include "fixtures/norm_loss_optim.hpp"
#include "fixtures/schedules.hpp"

using namespace skein::optim;

namespace {
void agrees(const Schedule& schedule, const std::vector<double>& factors) {
  REQUIRE(factors.size() == 40);
  for (std::size_t t = 0; t < factors.size(); ++t)
    CHECK(static_cast<double>(schedule(static_cast<std::int64_t>(t))) == Approx(factors[t]).epsilon(1e-6).margin(1e-7));
}
}  // namespace

TEST_CASE("Schedules agree with torch.optim.lr_scheduler over 40 steps", "[optim]") {
  agrees(constant(0.3), fixtures::constant_lr);
  agrees(step(7, 0.5), fixtures::step_lr);
  agrees(multi_step({5, 11, 30}, 0.2), fixtures::multi_step_lr);
  agrees(exponential(0.9), fixtures::exponential_lr);
  agrees(cosine(40, 0.1), fixtures::cosine_lr);
  agrees(linear(0.25, 0.75, 10), fixtures::linear_lr);
  agrees(polynomial(25, 2), fixtures::polynomial_lr);
  agrees(then(linear(0.125, 1, 7), 7, exponential(0.8)), fixtures::sequential_lr);
  agrees(linear(0.125, 1, 7) * exponential(0.8), fixtures::product_lr);
}

TEST_CASE("Warm-up starts above zero and ends at one", "[optim]") {
  CHECK(warmup(4)(0) == 0.25f);
  CHECK(warmup(4)(1) == 0.5f);
  CHECK(warmup(4)(3) == 1.0f);
  CHECK(warmup(4)(1000) == 1.0f);
  CHECK(warmup(1)(0) == 1.0f);
}

TEST_CASE("Linear scaling multiplies by the ranks, at once or over a warm-up", "[optim]") {
  CHECK(linear_scaling(8)(0) == 8.0f);
  CHECK(linear_scaling(8, 100)(0) == 1.0f);
  CHECK(linear_scaling(8, 100)(50) == 4.5f);
  CHECK(linear_scaling(8, 100)(100) == 8.0f);
  CHECK(linear_scaling(8, 100)(5000) == 8.0f);
  CHECK(linear_scaling(1, 100)(3) == 1.0f);
}

TEST_CASE("Cosine and polynomial hold their last value", "[optim]") {
  CHECK(cosine(10, 0.1)(10) == Approx(0.1f));
  CHECK(cosine(10, 0.1)(25) == Approx(0.1f));
  CHECK(cosine(10)(0) == 1.0f);
  CHECK(polynomial(10)(30) == 0.0f);
}

TEST_CASE("Schedules compose and are erased without losing anything", "[optim]") {
  const auto composed = warmup(10) * cosine(100) * linear_scaling(4) * step(30);
  const Schedule erased = composed;
  const Schedule copy = erased;
  for (std::int64_t t = 0; t < 120; ++t) {
    CHECK(erased(t) == composed(t));
    CHECK(copy(t) == warmup(10)(t) * cosine(100)(t) * 4.0f * step(30)(t));
  }
  CHECK(Schedule{}(0) == 1.0f);
  CHECK(Schedule{}(1000000) == 1.0f);
  const float halved = 0.5f;
  const Schedule own = [halved](std::int64_t t) { return t < 3 ? 1.0f : halved; };
  CHECK(own(2) == 1.0f);
  CHECK(own(3) == 0.5f);
  CHECK(then(constant(2), 5, then(constant(3), 5, constant(4)))(9) == 3.0f);
  const Schedule late = then(constant(1), 10000, warmup(100));  // ranks compare it in a fit that is made up
  CHECK_NOTHROW(late.bound({.steps = 10000, .steps_per_epoch = 1000, .refuses_longer = false}));
  CHECK_THROWS_WITH(late.bound({.steps = 10050, .steps_per_epoch = 1000}),
                    Catch::Contains("warmup: 100 steps, and the fit has 50"));
  CHECK(then(constant(2), 5, then(constant(3), 5, constant(4)))(10) == 4.0f);
}

TEST_CASE("A first part as long as the fit, whose second part would never come, is refused", "[optim]") {
  const auto bound = [](const Schedule& schedule, std::int64_t steps) {
    (void)schedule.bound({.steps = steps, .steps_per_epoch = 5});
  };
  const auto whole = then(constant(1), 25, cosine());
  CHECK_NOTHROW(bound(whole, 26));
  CHECK_THROWS_WITH(bound(whole, 25),
                    "then: the first part has 25 steps, and the fit has 25 for both: the second would never come; "
                    "give the first fewer steps, or the fit more .epochs");
  CHECK_THROWS_WITH(bound(whole, 1), Catch::Contains("the first part has 25 steps, and the fit has 1 for both"));
  CHECK_THROWS_WITH(bound(then(constant(1), epochs(4), cosine()), 20), Catch::Contains("the first part has 20 steps"));
  CHECK_THROWS_WITH(bound(warmup(5) * whole, 20), Catch::Contains("the first part has 25 steps"));
  CHECK_THROWS_WITH(bound(then(constant(2), 5, then(constant(3), 5, constant(4))), 8),
                    Catch::Contains("the first part has 5 steps, and the fit has 3 for both"));
  CHECK_NOTHROW(bound(then(warmup(share(0.1)), share(0.1), cosine()), 1));  // one step is a share of one
  CHECK_NOTHROW(whole.bound({.steps = 10, .steps_per_epoch = 5, .refuses_longer = false}));
  CHECK_NOTHROW(whole.bound({.steps_per_epoch = 5, .refuses_longer = true}).wants_lengths());
}

TEST_CASE("Schedules refuse periods that are not positive", "[optim]") {
  CHECK_THROWS_WITH(step(0), "step: 0 steps; it takes a positive number");
  CHECK_THROWS_WITH(cosine(-1), Catch::Contains("cosine: -1 steps"));
  CHECK_THROWS_WITH(warmup(0), Catch::Contains("warmup: 0 steps"));
  CHECK_THROWS_WITH(then(constant(1), 0, constant(1)), Catch::Contains("then: 0 steps"));
  CHECK_THROWS_WITH(linear_scaling(0), "linear_scaling(0): there is at least one rank");
  CHECK_THROWS_WITH(linear_scaling(8, -5), Catch::Contains("linear_scaling: a warm-up of -5 steps; give 0 or more"));
  CHECK_THROWS_WITH(cosine(epochs(std::numeric_limits<double>::infinity())), Catch::Contains("and a finite one"));
  CHECK_THROWS_WITH(multi_step({5, -10}), Catch::Contains("multi_step: -10 steps; it takes a positive number"));
  CHECK_THROWS_WITH(multi_step({epochs(0)}), Catch::Contains("multi_step: 0 epochs, or of the fit"));
  CHECK_THROWS_WITH(multi_step({1, 2, 3, 4, 5, 6, 7, 8, 9}), Catch::Contains("multi_step has 9 milestones; it takes at most 8"));
}

TEST_CASE("Schedules refuse what would make a rate negative or infinite, when they are made", "[optim]") {
  CHECK_THROWS_WITH(constant(-1), Catch::StartsWith("constant: the factor is -1"));
  CHECK_THROWS_WITH(step(7, -0.1), "step: gamma is -0.1: the rate would be negative, or no finite number; give 0 or more");
  CHECK_THROWS_WITH(multi_step({5}, -0.5), Catch::StartsWith("multi_step: gamma is -0.5"));
  CHECK_THROWS_WITH(exponential(-0.9), Catch::StartsWith("exponential: gamma is -0.9"));
  CHECK_THROWS_WITH(exponential(std::numeric_limits<double>::quiet_NaN()), Catch::StartsWith("exponential: gamma is nan"));
  CHECK_THROWS_WITH(cosine(40, -1), Catch::StartsWith("cosine: floor is -1"));
  CHECK_THROWS_WITH(linear(-1, 1), Catch::StartsWith("linear: from is -1"));
  CHECK_THROWS_WITH(linear(1, -1), Catch::StartsWith("linear: to is -1"));
  CHECK_THROWS_WITH(polynomial(40, -2), Catch::StartsWith("polynomial: power is -2"));
  CHECK_THROWS_WITH(one_cycle(40, 0.3, 0.04, -1), Catch::StartsWith("one_cycle: end is -1"));
}

TEST_CASE("One cycle of one step is the whole rate", "[optim]") {
  CHECK(one_cycle(1)(0) == 1.0f);
  CHECK(one_cycle().bound({.steps = 1, .steps_per_epoch = 1})(0) == 1.0f);
  CHECK(one_cycle(1)(1) == Approx(4e-6));
}

TEST_CASE("One cycle agrees with PyTorch's OneCycleLR", "[optim]") {
  agrees(one_cycle(40), fixtures::one_cycle_lr);
  agrees(Schedule(one_cycle()).bound({.steps = 40, .steps_per_epoch = 10}), fixtures::one_cycle_lr);
}

TEST_CASE("Lengths in epochs and in shares of the fit become steps", "[optim]") {
  const FitLength fit{.steps = 120, .steps_per_epoch = 30};
  const auto same = [&](const Schedule& of_the_fit, const Schedule& in_steps) {
    const Schedule bound = of_the_fit.bound(fit);
    CHECK(of_the_fit.wants_lengths());
    CHECK_FALSE(bound.wants_lengths());
    for (std::int64_t t = 0; t < 130; ++t) CHECK(bound(t) == in_steps(t));
  };
  same(cosine(), cosine(120));
  same(warmup(epochs(1)) * cosine(), warmup(30) * cosine(120));
  same(step(epochs(2), 0.5), step(60, 0.5));
  same(multi_step({epochs(1), share(0.75)}), multi_step({30, 90}));
  same(linear(1, 0.1), linear(1, 0.1, 120));
  same(polynomial(share(0.5), 2), polynomial(60, 2));
  same(then(warmup(epochs(1)), epochs(1), cosine()), then(warmup(30), 30, cosine(90)));  // the rest of the fit
  CHECK_FALSE(Schedule(cosine(5)).wants_lengths());
  CHECK_FALSE(Schedule([](std::int64_t) { return 1.0f; }).bound(fit).wants_lengths());
  const auto own = [](std::int64_t) { return 1.0f; };
  CHECK(Schedule{}.has_all_steps());
  CHECK(Schedule(then(warmup(5), 5, cosine(9))).has_all_steps());
  CHECK_FALSE(Schedule(own).has_all_steps());
  CHECK_FALSE(Schedule(then(warmup(5), 5, own)).has_all_steps());
  for (std::int64_t t = 0; t < 130; ++t) {  // without a Schedule around it
    CHECK(cosine().bound(fit)(t) == cosine(120)(t));
    CHECK((warmup(epochs(1)) * cosine()).bound(fit)(t) == (warmup(30) * cosine(120))(t));
    CHECK(then(warmup(epochs(1)), epochs(1), cosine()).bound({.steps = 120, .steps_per_epoch = 30})(t) ==
          then(warmup(30), 30, cosine(90))(t));
  }
  CHECK_THROWS_WITH(cosine()(3), Catch::Contains("has no length outside of a fit"));
  CHECK_THROWS_WITH(warmup(epochs(0)), Catch::Contains("warmup: "));
  CHECK_THROWS_WITH(Schedule(warmup(121) * cosine()).bound(fit),
                    Catch::Contains("warmup: 121 steps, and the fit has 120: the rate"));
  CHECK_THROWS_WITH(Schedule(warmup(epochs(5))).bound(fit), Catch::Contains("warmup: 150 steps, and the fit has 120"));
  CHECK_NOTHROW(Schedule(warmup(epochs(4))).bound(fit));
  CHECK_THROWS_WITH(linear_scaling(8, 121).bound(fit), Catch::Contains("warmup: 121 steps, and the fit has 120"));
  CHECK_NOTHROW(linear_scaling(1, 121).bound(fit));  // one rank: nothing rises
}

TEST_CASE("Lengths that a fit says nothing of are refused, and those beyond all numbers last for ever", "[optim]") {
  CHECK_THROWS_WITH(cosine(epochs(3)).bound({.steps = 100}),
                    "bound: the schedule has a length in epochs, and .steps_per_epoch is 0: give 1 or more");
  CHECK_THROWS_WITH(cosine().bound({.steps_per_epoch = 10}), Catch::Contains("a share of it, and .steps is 0: give 1 or more"));
  CHECK_NOTHROW(cosine(5).bound({}));
  CHECK(linear(1, 0, epochs(1e300)).bound({.steps = 100, .steps_per_epoch = 10})(50) == 1.0f);
}
