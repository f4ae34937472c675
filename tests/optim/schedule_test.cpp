// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <vector>

#include <skein/optim/schedule.hpp>

#include "fixtures/norm_loss_optim.hpp"

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
  CHECK(then(constant(2), 5, then(constant(3), 5, constant(4)))(10) == 4.0f);
}

TEST_CASE("Schedules refuse periods that are not positive", "[optim]") {
  CHECK_THROWS_WITH(step(0), "step: 0 steps; it takes a positive number");
  CHECK_THROWS_WITH(cosine(-1), Catch::Contains("cosine: -1 steps"));
  CHECK_THROWS_WITH(warmup(0), Catch::Contains("warmup: 0 steps"));
  CHECK_THROWS_WITH(then(constant(1), 0, constant(1)), Catch::Contains("then: 0 steps"));
  CHECK_THROWS_WITH(linear_scaling(0), "linear_scaling(0): there is at least one rank");
  CHECK_THROWS_WITH(multi_step({1, 2, 3, 4, 5, 6, 7, 8, 9}), Catch::Contains("multi_step has 9 milestones; it takes at most 8"));
}
