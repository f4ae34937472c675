// SPDX-License-Identifier: Apache-2.0
#include <skein/optim/loss_scaler.hpp>

#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <catch2/catch.hpp>

namespace sk = skein;
using sk::optim::LossScaler, sk::optim::LossScaling;

namespace {
constexpr LossScaler after(LossScaler s, int good, int bad) {
  for (int i = 0; i < good; ++i) s.update(false);
  for (int i = 0; i < bad; ++i) s.update(true);
  return s;
}
std::string said(const LossScaling& s) {
  try {
    s.check();
  } catch (const sk::ArgumentError& e) { return e.what(); }
  return "";
}
/// Of a scale, good steps and skipped ones.
struct File {
  using is_loading = std::true_type;
  double scale;
  std::int64_t counts[2], next = 0;
  File& operator&(double& value) { return value = scale, *this; }
  File& operator&(std::int64_t& value) { return value = counts[next++], *this; }
};
}  // namespace

TEST_CASE("the scale grows after an interval of good steps and falls with an overflow", "[optim]") {
  // GradScaler(): 2^16, doubled after 2000 steps without an overflow, halved by one.
  constexpr LossScaler fresh{LossScaling::dynamic()};
  static_assert(fresh.scale() == 65536 && fresh.active());
  static_assert(after(fresh, 1999, 0).scale() == 65536 && after(fresh, 2000, 0).scale() == 131072);
  static_assert(after(fresh, 0, 1).scale() == 32768 && after(fresh, 0, 3).scale() == 8192);
  static_assert(after(after(fresh, 1999, 1), 1999, 0).scale() == 32768);  // an overflow starts the count anew
  static_assert(after(after(fresh, 1999, 1), 2000, 0).scale() == 65536);
  static_assert(after(fresh, 2001, 0).good_steps() == 1 && after(fresh, 5, 2).skipped() == 2);
  LossScaler s = fresh;
  CHECK(s.update(false));
  CHECK_FALSE(s.update(true));
}

TEST_CASE("the scale stays within its bounds", "[optim]") {
  constexpr LossScaler s{LossScaling{.initial = 8, .growth = 3, .interval = 1, .least = 2, .greatest = 100}};
  static_assert(after(s, 2, 0).scale() == 72 && after(s, 3, 0).scale() == 100 && after(s, 9, 0).scale() == 100);
  static_assert(after(s, 0, 2).scale() == 2 && after(s, 0, 9).scale() == 2);
  SUCCEED();
}

TEST_CASE("a fixed scale never moves, and none is none", "[optim]") {
  constexpr LossScaler fixed{LossScaling::fixed(1024)}, small{LossScaling::fixed(0.25)}, none{LossScaling::none()};
  static_assert(after(fixed, 5000, 3).scale() == 1024 && fixed.active() && after(fixed, 0, 3).skipped() == 3);
  static_assert(after(small, 10, 10).scale() == 0.25);
  static_assert(none.scale() == 1 && !none.active() && !LossScaler{}.active());
  constexpr LossScaler one{LossScaling::fixed(1)}, falls{LossScaling{.initial = 1, .interval = 0, .least = 0.01}};
  static_assert(one.active() && after(one, 5, 3).scale() == 1 && after(one, 0, 3).skipped() == 3);
  static_assert(falls.active() && falls.can_fall() && after(falls, 0, 1).scale() == 0.5);
  CHECK(said(LossScaling::fixed(1e9)).empty());
  CHECK(said(LossScaling::none()).empty());
  CHECK(said({}).empty());
}

TEST_CASE("a state that was loaded goes on under other options", "[optim]") {
  const auto loaded = [](const LossScaling& options, double scale = 512) {
    LossScaler s{options};
    File file{scale, {1500, 7}};
    s.serialize(file, 0);
    return s;
  };
  CHECK(after(loaded({.interval = 1000}), 1, 0).scale() == 1024);  // more good steps than the interval has now
  CHECK(after(loaded({}), 499, 0).scale() == 512);
  CHECK(after(loaded({}), 500, 0).scale() == 1024);
  CHECK(loaded(LossScaling::fixed(16)).scale() == 16);
  CHECK(loaded({.initial = 8, .greatest = 100}).scale() == 100);
  const LossScaler other = loaded({}).with({.initial = 64, .interval = 1600});
  CHECK(after(other, 99, 0).scale() == 512);
  CHECK(after(other, 100, 0).scale() == 1024);
  CHECK(other.skipped() == 7);
  // another scaling of a training that goes on in this process
  CHECK(after(loaded({}), 1, 0).with({.initial = 64}).scale() == 64);
  CHECK(loaded({}, 0.25).with({.initial = 1, .least = 0.1}).scale() == 0.25);  // which the first options' bounds had raised
  for (const double nonsense : {0.0, -1.0, std::nan("")}) CHECK(loaded({}, nonsense).scale() == 65536);
}

TEST_CASE("a scaling that cannot work is refused", "[optim]") {
  CHECK(said({.initial = 0}) == "LossScaling{.initial = 0}: the scale is positive, from .least to .greatest");
  CHECK(said({.initial = 2, .least = 4}).find(".initial") != std::string::npos);
  CHECK(said({.growth = 0.5}).find("good steps raise the scale") != std::string::npos);
  CHECK(said({.backoff = 2}).find("overflows lower the scale") != std::string::npos);
  CHECK(said({.backoff = 0}).find("overflows lower the scale") != std::string::npos);
  CHECK(said(LossScaling::fixed(HUGE_VAL)).find("as floats, which end at 3.4e38") != std::string::npos);
  CHECK(said({.greatest = 1e39}).find(".greatest") != std::string::npos);
  CHECK(said({.growth = HUGE_VAL}).find("at least 1, and finite") != std::string::npos);
  CHECK(said({.interval = -1}).find("with 0 the scale never grows") != std::string::npos);
}
