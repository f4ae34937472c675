// SPDX-License-Identifier: Apache-2.0
// The clock by itself: parts add up to what passed. What steps tell it: tests/nn/loss/timed_test.cpp.
#include <catch2/catch.hpp>

#include <chrono>
#include <thread>

#include <skein/core/clock.hpp>
#include <skein/core/step_clock.hpp>

namespace sk = skein;

TEST_CASE("A lap is what passed since the one before, and all laps are the whole time", "[core]") {
  const double before = sk::seconds_now();
  sk::StepClock clock;
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  clock.lap(sk::StepPart::forward);
  clock.lap(sk::StepPart::loss);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  clock.lap(sk::StepPart::forward);
  const double after = sk::seconds_now();
  CHECK(clock.seconds(sk::StepPart::forward) >= 0.007);
  CHECK(clock.seconds(sk::StepPart::backward) == 0);
  CHECK(clock.seconds() == clock.seconds(sk::StepPart::forward) + clock.seconds(sk::StepPart::loss));
  CHECK(clock.seconds() <= after - before);
  clock.restart();
  CHECK(clock.seconds() == 0);
}

TEST_CASE("Every part of a step has a name", "[core]") {
  CHECK(sk::name_of(sk::StepPart::load) == "load");
  CHECK(sk::name_of(sk::StepPart::update) == "update");
}
