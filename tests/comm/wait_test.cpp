// SPDX-License-Identifier: Apache-2.0
// Waiting: whether ranks spin, by the cores that they may run on; what a deadline counts.
#include "skein/comm/wait.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <thread>
#include <vector>

namespace comm = skein::comm;

TEST_CASE("ranks spin where the cores of all of them are as many as they are") {
  const auto cores = [](std::vector<int> numbers) {
    skein::Cores made;
    for (const int n : numbers) made.add(n);
    return made;
  };
  CHECK(comm::spins_of(std::vector{cores({0}), cores({1})}) > 0);
  CHECK(comm::spins_of(std::vector{cores({0, 1}), cores({0, 1})}) > 0);
  CHECK(comm::spins_of(std::vector{cores({3}), cores({3})}) == 0);
  CHECK(comm::spins_of(std::vector{cores({0, 1}), cores({0, 1}), cores({1})}) == 0);
  CHECK(comm::spins_of(std::vector{cores({1500}), cores({8000})}) > 0);
  CHECK(comm::spins_of(std::vector{cores({8000}), cores({8000})}) == 0);
  CHECK(skein::own_cores().count() >= skein::available_cores());
}

TEST_CASE("a clock counts the time between two looks up to its longest, and a deadline a quarter of itself") {
  const auto sleep = [](int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); };
  comm::AwakeClock clock(0.1);
  CHECK(clock.now() == 0);
  sleep(20);
  const double first = clock.now();
  CHECK(first >= 0.02);
  CHECK(first <= 0.1);
  sleep(300);
  CHECK(clock.now() - first <= 0.1000001);

  comm::Deadline timer(0.4);
  sleep(500);
  CHECK(timer.waited() == 0);
  CHECK_FALSE(timer.over());
  timer.start();
  for (const bool over : {false, false, false, true}) {
    sleep(500);
    CHECK(timer.over() == over);
  }
  timer.stop();
  CHECK_FALSE(timer.over());
  timer.start();
  CHECK(timer.waited() < 0.4);
}

TEST_CASE("a sleep of a wait is an eighth of its limit, from half a millisecond to 20 ms, and counts whole") {
  const auto ms = [](double limit) {
    return std::chrono::duration<double, std::milli>(comm::Deadline(limit).sleep_interval()).count();
  };
  CHECK(ms(60) == Approx(20));
  CHECK(ms(0.16) == Approx(20));
  CHECK(ms(0.04) == Approx(5));  // the clock counts 10 ms of a longer one
  CHECK(ms(0.001) == Approx(0.5));
  auto timer = comm::Deadline::from_now(0.04);
  double last = 0;
  for (int looks = 0; !timer.over(); ++looks) {
    REQUIRE(looks < 8);
    std::this_thread::sleep_for(timer.sleep_interval());
    CHECK(timer.left() <= 0.04 - last - 0.00499);
    last = timer.waited();
  }
}

TEST_CASE("time in a call that does not look at the clock counts whole where a deadline is told so, that before it does not") {
  const auto sleep = [] { return std::this_thread::sleep_for(std::chrono::milliseconds(900)), 3; };
  auto timer = comm::Deadline::from_now(2);
  CHECK(timer.count_whole(sleep) == 3);
  CHECK(timer.waited() >= 0.9);
  auto stopped = comm::Deadline::from_now(2);
  sleep();  // as one that was stopped: at most half a second of it counts
  stopped.count_whole([] { return 0; });
  CHECK(stopped.waited() < 0.8);
  comm::Deadline idle(2);
  idle.count_whole([] { return 0; });
  CHECK(idle.waited() == 0);
}
