// SPDX-License-Identifier: Apache-2.0
// The strong Wolfe search: points that fulfil the conditions on functions of every difficulty, arrays that are never overwritten
// while they are needed, losses that are no number.
#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include <skein/optim/lbfgs/line_search.hpp>

using skein::optim::LineFunction, skein::optim::LinePoint, skein::optim::strong_wolfe, skein::optim::WolfeOptions;

namespace {
/// A function with its derivative; each array remembers the length that it was written for.
template <class F, class D> struct Function final : LineFunction {
  F f;
  D d;
  double arrays[4] = {};
  int calls = 0;
  Function(F f_, D d_) : f(f_), d(d_) {}
  LinePoint at(double t, int array) override {
    REQUIRE(array > 0);
    REQUIRE(array < 4);
    arrays[array] = t;
    ++calls;
    return {t, f(t), d(t), array};
  }
};

template <class F, class D> void fulfils(F f, D d, double first, int most_calls) {
  Function line(f, d);
  const LinePoint start{0, f(0), d(0), 0};
  REQUIRE(start.slope < 0);
  const LinePoint p = strong_wolfe(line, start, first, {});
  INFO("from " << first << " to " << p.length << " in " << line.calls);
  CHECK(p.loss <= start.loss + 1e-4 * p.length * start.slope);
  CHECK(std::abs(p.slope) <= 0.9 * std::abs(start.slope));
  CHECK(line.arrays[p.gradient] == p.length);
  CHECK(line.calls <= most_calls);
}
}  // namespace

TEST_CASE("The search ends where the strong Wolfe conditions hold", "[optim]") {
  for (const double first : {1e-3, 0.1, 1.0, 10.0, 40.0}) {
    fulfils([](double t) { return (t - 3) * (t - 3); }, [](double t) { return 2 * (t - 3); }, first, 10);
    // More and Thuente, "Line search algorithms with guaranteed sufficient decrease", 1994: functions 1 and 2.
    fulfils([](double t) { return -t / (t * t + 2); }, [](double t) { return (t * t - 2) / ((t * t + 2) * (t * t + 2)); }, first,
            20);
    fulfils([](double t) { return std::pow(t + 0.004, 5) - 2 * std::pow(t + 0.004, 4); },
            [](double t) { return 5 * std::pow(t + 0.004, 4) - 8 * std::pow(t + 0.004, 3); }, first, 26);
    fulfils([](double t) { return std::cosh(t - 1) - 0.5 * std::sin(3 * t); },
            [](double t) { return std::sinh(t - 1) - 1.5 * std::cos(3 * t); }, first, 26);
  }
}

TEST_CASE("The loss has to fall by the share that is asked for", "[optim]") {
  Function parabola([](double t) { return (t - 1) * (t - 1); }, [](double t) { return 2 * (t - 1); });
  CHECK(strong_wolfe(parabola, {0, 1, -2, 0}, 1.8, {}).length == 1.8);
  CHECK(strong_wolfe(parabola, {0, 1, -2, 0}, 1.8, {.decrease = 0.4}).length == Approx(1));  // holds up to 1.2
}

TEST_CASE("A loss that is no number, or infinite, is as one that does not fall", "[optim]") {
  const auto beyond = [](double t) { return t > 2 ? std::numeric_limits<double>::quiet_NaN() : (t - 1) * (t - 1); };
  const auto infinite = [](double t) { return t > 2 ? std::numeric_limits<double>::infinity() : (t - 1) * (t - 1); };
  const auto slope = [](double t) { return 2 * (t - 1); };
  fulfils(beyond, slope, 50, 26);
  fulfils(infinite, slope, 50, 26);
  const auto below = [](double t) { return t > 2 ? -std::numeric_limits<double>::infinity() : (t - 1) * (t - 1); };
  fulfils(below, slope, 50, 26);
  fulfils([](double t) { return t > 2 ? -10 : (t - 1) * (t - 1); },
          [](double t) { return t > 2 ? std::numeric_limits<double>::quiet_NaN() : 2 * (t - 1); }, 50, 26);
}

TEST_CASE("A search without an end gives the best point that it found", "[optim]") {
  Function falling([](double t) { return -t; }, [](double) { return -1.0; });
  const LinePoint p = strong_wolfe(falling, {0, 0, -1, 0}, 1, {.most = 5});
  CHECK(falling.calls == 6);
  CHECK(p.length > 1000);
  CHECK(falling.arrays[p.gradient] == p.length);
  Function rising([](double t) { return t > 0 ? 1.0 : 0.0; }, [](double) { return -1.0; });
  CHECK(strong_wolfe(rising, {0, 0, -1, 0}, 1, {.tolerance_change = 0, .most = 12}).length == 0);
  CHECK(rising.calls == 13);
}

TEST_CASE("The minimum of a cubic through two points", "[optim]") {
  const auto point = [](double t) { return LinePoint{t, t * t * t - 3 * t + 1, 3 * t * t - 3, 0}; };  // its minimum is at 1
  CHECK(skein::optim::cubic_minimum(point(0.2), point(4), 0, 5) == Approx(1));
  CHECK(skein::optim::cubic_minimum(point(4), point(0.2), 0, 5) == Approx(1));
  CHECK(skein::optim::cubic_minimum(point(0.2), point(4), 1.5, 5) == Approx(1.5));
  const LinePoint rising{0, -1, 1, 0};
  CHECK(skein::optim::cubic_minimum(rising, {1, std::nan(""), 1, 0}, 0, 1) == 0.5);
}

TEST_CASE("Losses that are no number within the bracket do not take the place of its good end", "[optim]") {
  const auto hole = [](double t) { return t > 0.2 && t < 1.6 ? std::numeric_limits<double>::quiet_NaN() : (t - 1) * (t - 1); };
  fulfils(
      hole, [](double t) { return 2 * (t - 1); }, 1.95, 10);
}
