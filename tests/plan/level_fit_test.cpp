// SPDX-License-Identifier: Apache-2.0
#include <skein/plan/level_fit.hpp>

#include <catch2/catch.hpp>

#include <random>

namespace sk = skein;
using namespace skein::plan;

namespace {
std::vector<MessageTime> times(Level level, double noise, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, noise);
  std::vector<MessageTime> all;
  for (double bytes = 8; bytes < 5e7; bytes *= 1.5)
    all.push_back({bytes, (level.alpha + level.beta * bytes) * std::exp(normal(random))});
  return all;
}
}  // namespace

TEST_CASE("exact times give back alpha and beta") {
  const LevelFit fit = fit_level(times({3e-6, 2e-10}, 0, 1));
  CHECK(fit.level.alpha == Approx(3e-6).epsilon(1e-9));
  CHECK(fit.level.beta == Approx(2e-10).epsilon(1e-9));
  CHECK(fit.left_out == 0);
  CHECK(fit.median_error < 1e-9);
}

TEST_CASE("noise of 5 % moves alpha and beta by a few percent, at small and at large sizes") {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const LevelFit fit = fit_level(times({3e-6, 2e-10}, 0.05, seed));
    CHECK(fit.level.alpha == Approx(3e-6).epsilon(0.06));
    CHECK(fit.level.beta == Approx(2e-10).epsilon(0.06));
  }
}

TEST_CASE("times that are far off change nothing much") {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    std::vector<MessageTime> t = times({3e-6, 2e-10}, 0.03, seed);
    std::mt19937 random(seed);
    for (std::size_t i = 0; i < t.size(); ++i)
      if (random() % 6 == 0) t[i].seconds *= 10;  // another job ran
    const LevelFit fit = fit_level(t);
    CHECK(fit.left_out > 0);
    CHECK(fit.level.alpha == Approx(3e-6).epsilon(0.1));
    CHECK(fit.level.beta == Approx(2e-10).epsilon(0.1));
  }
}

TEST_CASE("times that are far too short change nothing much, though their relative errors are the largest") {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    std::vector<MessageTime> t = times({3e-6, 2e-10}, 0.03, seed);
    t[5].seconds /= 10;
    t[30].seconds /= 10;
    const LevelFit fit = fit_level(t);
    CHECK(fit.left_out >= 2);
    CHECK(fit.level.alpha == Approx(3e-6).epsilon(0.1));
    CHECK(fit.level.beta == Approx(2e-10).epsilon(0.1));
  }
}

TEST_CASE("half of the sizes predict the other half") {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    std::vector<MessageTime> half, other;
    const std::vector<MessageTime> all = times({2e-5, 1e-9}, 0.08, seed);
    for (std::size_t i = 0; i < all.size(); ++i) (i % 2 ? other : half).push_back(all[i]);
    CHECK(median_error(fit_level(half).level, other) <= 0.1);
  }
}

TEST_CASE("neither alpha nor beta is negative") {
  const MessageTime falling[] = {{1, 2}, {10, 1.9}, {100, 1.8}}, bent[] = {{1, 0.5}, {10, 10}, {100, 110}};
  CHECK(fit_level(falling).level.beta == 0);
  CHECK(fit_level(falling).level.alpha > 1.7);
  CHECK(fit_level(bent).level.alpha >= 0);
  CHECK(fit_level(bent).level.beta > 0);
}

TEST_CASE("what cannot be fitted is refused") {
  const MessageTime same[] = {{8, 1}, {8, 2}}, none[] = {{8, 1}, {16, 0}};
  CHECK_THROWS_WITH(fit_level(same), Catch::Contains("two different sizes at least"));
  CHECK_THROWS_WITH(fit_level({}), Catch::Contains("two different sizes at least"));
  CHECK_THROWS_WITH(fit_level(none), Catch::Contains("a time must be positive"));
}
