// SPDX-License-Identifier: Apache-2.0
// The end of a schedule, in a fit whose number of epochs is but a bound: it is found by some of its steps. What fit refuses
// besides is in options_test.cpp.
#include "skein/train/check_schedule.hpp"

#include <catch2/catch.hpp>

#include <cstdint>
#include <limits>

namespace sk = skein;
namespace optim = skein::optim;
using namespace skein::train::detail;

namespace {
constexpr std::int64_t of_epoch = 100, bound = std::numeric_limits<int>::max() * of_epoch;

/// A factor for each step, which counts how often it is asked.
struct Counted {
  std::int64_t* asked;
  float (*factor)(std::int64_t);
  float operator()(std::int64_t step) const { return ++*asked, factor(step); }
};
}  // namespace

TEST_CASE("a schedule that ends early in a fit of any length is refused with the step of its end", "[train]") {
  CHECK_THROWS_WITH(check_end(optim::cosine(10000), bound),
                    Catch::Contains("the .schedule is 0 from step 10001 on, so that the last 214748354700 of the 214748364700"));
  CHECK_THROWS_WITH(check_end(optim::cosine(10000), 20000), Catch::Contains("the .schedule is 0 from step 10001 on"));
  CHECK_THROWS_WITH(check_end(optim::constant(0), bound), Catch::Contains("is 0 from step 1 on"));
  CHECK_NOTHROW(check_schedule(optim::cosine().bound({.steps = bound, .steps_per_epoch = of_epoch}), bound, of_epoch));
}

TEST_CASE("a schedule that rests at its end is no error, and is not asked for each step", "[train]") {
  std::int64_t asked = 0;
  CHECK_NOTHROW(check_end(Counted{&asked, [](std::int64_t s) { return s % 2 == 0 ? 0.0f : 1.0f; }}, bound));
  CHECK_NOTHROW(check_end(Counted{&asked, [](std::int64_t s) { return s % 100 < 99 ? 0.0f : 1.0f; }}, bound));
  CHECK_NOTHROW(check_end(Counted{&asked, [](std::int64_t s) { return s < bound - bound / 200 ? 1.0f : 0.0f; }}, bound));
  CHECK_THROWS_WITH(check_end(Counted{&asked, [](std::int64_t s) { return s < bound / 2 ? 1.0f : 0.0f; }}, bound),
                    Catch::Contains("is 0 from step 107374182351 on"));
  CHECK(asked < 5000);
}
