// SPDX-License-Identifier: Apache-2.0
#include <skein/draw/axis.hpp>

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

using skein::draw::Axis;

TEST_CASE("a linear axis ends at round ticks") {
  const Axis axis = Axis::linear(0.13, 2.2, 5);
  CHECK(axis.low == Approx(0.0));
  CHECK(axis.high == Approx(2.5));
  REQUIRE(axis.ticks.size() == 6);
  CHECK(axis.ticks[1] == Approx(0.5));
  CHECK(axis.at(1.25) == Approx(0.5));
}

TEST_CASE("one value alone still has an axis around it") {
  const Axis axis = Axis::linear(3, 3, 5), zero = Axis::linear(0, 0, 5);
  CHECK((axis.low < 3 && axis.high > 3 && axis.ticks.size() >= 3));
  CHECK((zero.low < 0 && zero.high > 0));
}

TEST_CASE("an axis may be longer than the largest number") {
  const Axis axis = Axis::linear(-1e308, 1e308, 6);
  CHECK(axis.ticks.size() == 5);
  CHECK(axis.at(0) == 0.5);
}

TEST_CASE("an axis ends at the largest number, and has a length though its values have next to none") {
  constexpr double most = std::numeric_limits<double>::max(), least = std::numeric_limits<double>::denorm_min();
  for (const auto& [from, to] : {std::pair{-1.7e308, 1.7e308}, std::pair{-most, most}, std::pair{0.0, most},
                                 std::pair{most, most}, std::pair{-most, -most}, std::pair{0.0, least}, std::pair{least, least},
                                 std::pair{-least, least}, std::pair{1e-310, 2e-310}, std::pair{1e-290, 2e-290}}) {
    INFO(from << " to " << to);
    const Axis axis = Axis::linear(from, to, 6);
    CHECK((std::isfinite(axis.low) && std::isfinite(axis.high) && axis.low < axis.high));
    CHECK((axis.at(from) >= -1e-9 && axis.at(to) <= 1 + 1e-9));
    CHECK((axis.ticks.size() >= 2 && axis.ticks.size() <= 14));
    for (const double tick : axis.ticks) CHECK((axis.at(tick) >= -1e-9 && axis.at(tick) <= 1 + 1e-9));
  }
}

TEST_CASE("epochs have whole ticks that do not crowd") {
  CHECK(Axis::whole(1, 5, 9).ticks == std::vector<double>{1, 2, 3, 4, 5});
  CHECK(Axis::whole(1, 30, 9).ticks == std::vector<double>{1, 5, 10, 15, 20, 25, 30});
  CHECK(Axis::whole(1, 1, 9).ticks == std::vector<double>{1});
  CHECK(Axis::whole(4, 300, 9).ticks.size() <= 10);
}

TEST_CASE("whole ticks may be larger than an int") {
  CHECK(Axis::whole(0, 3'000'000'000, 9).ticks == std::vector<double>{0, 5e8, 1e9, 1.5e9, 2e9, 2.5e9, 3e9});
  CHECK(Axis::whole(2'147'483'000, 2'147'483'647, 9).ticks.size() <= 10);
  CHECK(Axis::whole(-4, 4, 9).ticks == std::vector<double>{-4, -3, -2, -1, 0, 1, 2, 3, 4});
}

TEST_CASE("a logarithmic axis has powers of ten") {
  const Axis axis = Axis::log10(1e-7, 1);
  CHECK(axis.ticks.size() == 8);
  CHECK(axis.at(1e-7) == Approx(0.0).margin(1e-12).epsilon(0));
  CHECK(axis.at(1) == Approx(1.0));
  CHECK(Axis::log10(0.1, 10).ticks.size() == 7);  // 0.1 0.2 0.5 1 2 5 10
  const Axis many = Axis::log10(1e-100, 1e100);
  CHECK((many.ticks.size() >= 6 && many.ticks.size() <= 14));
}

TEST_CASE("a short logarithmic axis has ticks, too") {
  for (const auto& [least, greatest] :
       {std::pair{3.0, 4.0}, std::pair{0.24, 0.46}, std::pair{5.1, 5.3}, std::pair{900.0, 1100.0}}) {
    INFO(least << " to " << greatest);
    const std::vector<double> ticks = Axis::log10(least, greatest).ticks;
    REQUIRE(ticks.size() >= 2);
    CHECK((ticks.size() <= 8 && ticks.front() >= least && ticks.back() <= greatest));
  }
}

TEST_CASE("an axis of values that are next to each other has room for them") {
  for (const double value : {0.9476572718746066, 1e-300, -3.7e12, 1e300}) {
    const double next = std::nextafter(value, 2 * std::fabs(value));
    const Axis axis = Axis::linear(value, next, 5);
    CHECK((axis.low < value && axis.high > next && std::isfinite(axis.at(value))));
  }
}
