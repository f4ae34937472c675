// SPDX-License-Identifier: Apache-2.0
// The coordinator's mind, fed by hand: times are given, nothing waits.
#include "skein/comm/control/coordinator_state.hpp"

#include <catch2/catch.hpp>

#include <set>
#include <string>
#include <vector>

#include "skein/comm/control/watch.hpp"

namespace sk = skein;
namespace control = skein::comm::control;
using Catch::Matchers::Contains;
using Catch::Matchers::Equals;

namespace {
std::string barrier() {
  const sk::comm::Signature s{};
  return std::string(reinterpret_cast<const char*>(&s), sizeof s);
}
control::Frame exchange(std::uint64_t number, std::uint32_t group = 0, double limit = 10) {
  return {control::Kind::Exchange, group, number, limit, barrier()};
}
control::Frame open(std::uint32_t group, std::vector<int> members) {
  return {control::Kind::Open, group, 0, 0,
          std::string(reinterpret_cast<const char*>(members.data()), members.size() * sizeof(int))};
}
control::Frame state(std::uint64_t started, const std::string& waits = "") {
  return {control::Kind::State, 0, started, 0, waits};
}
control::Frame overdue(std::uint64_t call, double limit) {
  return {control::Kind::Overdue, 0, call, limit, "all_reduce(Sum) of 8 float"};
}
int count(const std::vector<std::pair<int, control::Frame>>& out, control::Kind kind) {
  int n = 0;
  for (const auto& [rank, f] : out) n += f.kind == kind;
  return n;
}
}  // namespace

TEST_CASE("an exchange answers when all have come, each rank once, all with one ticket") {
  control::CoordinatorState coordinator_state(3);
  coordinator_state.take(2, exchange(0), 0);
  coordinator_state.take(0, exchange(0), 1);
  CHECK(coordinator_state.output().empty());
  CHECK(coordinator_state.next_due() == 10);
  coordinator_state.take(1, exchange(0), 2);
  const auto out = coordinator_state.output();
  CHECK(count(out, control::Kind::Gathered) == 3);
  CHECK(out[0].second.payload == out[2].second.payload);
  CHECK(coordinator_state.next_due() > 1e17);
  coordinator_state.tick(1e6);
  CHECK_FALSE(coordinator_state.failed());
  CHECK_THROWS_AS((coordinator_state.take(0, exchange(1), 0), coordinator_state.take(0, exchange(1), 0)), sk::CommError);
}

TEST_CASE("values of all ranks that are too many for one frame end the call by a sentence") {
  control::CoordinatorState coordinator_state(2);
  for (const int r : {0, 1}) {
    control::Frame f = exchange(3);
    f.payload.resize(std::size_t{129} << 20);  // each alone could be sent
    coordinator_state.take(r, std::move(f), 0);
  }
  CHECK_THAT(coordinator_state.verdict(),
             Equals("barrier (call 3): the values of all ranks are 270532608 bytes, and the coordinator "
                    "carries control values, at most 256 MiB at once"));
  CHECK(count(coordinator_state.output(), control::Kind::Fail) == 2);
}

TEST_CASE("a group that all of its members have left is forgotten") {
  control::CoordinatorState coordinator_state(3);
  for (const std::uint32_t id : {7u, 8u})
    for (const int r : {2, 0}) coordinator_state.take(r, open(id, {2, 0}), 0);
  coordinator_state.take(2, {control::Kind::Left, 7, 0, 0, {}}, 0);
  CHECK(coordinator_state.groups() == 3);
  coordinator_state.take(0, {control::Kind::Left, 7, 0, 0, {}}, 0);
  CHECK(coordinator_state.groups() == 2);
  for (const int r : {2, 0}) coordinator_state.take(r, {control::Kind::Goodbye, 0, 0, 0, {}}, 0);
  CHECK(coordinator_state.groups() == 1);
  CHECK_FALSE(coordinator_state.failed());
}

TEST_CASE("what ends a group is told to its members alone, and what an exception made leave it says so to who awaits it") {
  control::CoordinatorState coordinator_state(3);
  const bool leaves = GENERATE(true, false);
  coordinator_state.take(0, open(7, {2, 0}), 0);
  coordinator_state.take(0, exchange(0, 7), 1);
  if (leaves) coordinator_state.take(2, {control::Kind::Left, 7, 0, 0, "rank 2 failed"}, 1);
  else coordinator_state.take(2, {control::Kind::Fail, 7, 0, 0, "rank 2 failed"}, 1);
  std::set<int> told;
  for (const auto& [rank, frame] : coordinator_state.output())
    if (frame.kind == control::Kind::Fail && frame.group == 7 && frame.payload == "rank 2 failed") told.insert(rank);
  CHECK(told == std::set<int>{0, 2});
  if (!leaves) {  // who opens the group behind that hears of it too
    coordinator_state.take(2, open(7, {2, 0}), 2);
    const auto late = coordinator_state.output();
    CHECK((late.size() == 1 && late[0].first == 2 && late[0].second.payload == "rank 2 failed"));
  }
  coordinator_state.take(0, exchange(1, 7), 2);  // sent before it heard
  coordinator_state.tick(100);
  for (int r = 0; r < 3; ++r) coordinator_state.take(r, exchange(0), 101);
  CHECK_FALSE(coordinator_state.failed());
  coordinator_state.take(0, {control::Kind::Left, 7, 0, 0, ""}, 102);
  if (!leaves) coordinator_state.take(2, {control::Kind::Left, 7, 0, 0, ""}, 102);
  CHECK(coordinator_state.groups() == 1);
}

TEST_CASE("who leaves a group is told to its others, and awaited there by nobody") {
  control::CoordinatorState coordinator_state(3);
  coordinator_state.take(0, open(7, {2, 0}), 0);
  coordinator_state.take(2, {control::Kind::Left, 7, 0, 0, ""}, 0);
  const auto out = coordinator_state.output();
  REQUIRE(out.size() == 1);
  CHECK(out[0].first == 0);
  CHECK((out[0].second.kind == control::Kind::Left && out[0].second.group == 7 && out[0].second.number == 0));
  for (int r = 0; r < 3; ++r) coordinator_state.take(r, exchange(0), 1);  // it is in the group of all still
  CHECK_FALSE(coordinator_state.failed());
  coordinator_state.take(0, exchange(0, 7), 2);
  CHECK_THAT(coordinator_state.verdict(), Equals("barrier (call 0): rank 2 returned and will not arrive"));
  CHECK_THROWS_AS(control::CoordinatorState(2).take(0, {control::Kind::Left, 7, 0, 0, ""}, 0), sk::CommError);
}

TEST_CASE("who does not come is named when the shortest deadline passes, to all, and nothing follows") {
  control::CoordinatorState coordinator_state(4);
  coordinator_state.take(0, exchange(5, 0, 10), 0);
  coordinator_state.take(2, exchange(5, 0, 0.5), 1);
  coordinator_state.tick(1.4);
  CHECK_FALSE(coordinator_state.failed());
  coordinator_state.tick(1.5);
  CHECK_THAT(coordinator_state.verdict(), Equals("barrier (call 5): ranks 1, 3 did not arrive within 0.5 s"));
  CHECK(count(coordinator_state.output(), control::Kind::Fail) == 4);
  coordinator_state.take(1, exchange(5), 2);
  coordinator_state.lost(3);
  CHECK(coordinator_state.output().empty());
}

TEST_CASE("a rank that has left, or is lost, ends those who wait for it") {
  const bool first = GENERATE(true, false);
  control::CoordinatorState coordinator_state(2);
  if (first) {
    coordinator_state.take(1, {control::Kind::Goodbye, 0, 0, 0, ""}, 0);
    CHECK_FALSE(coordinator_state.failed());
    coordinator_state.take(0, exchange(0), 0);
  } else {
    coordinator_state.take(0, exchange(0), 0);
    coordinator_state.take(1, {control::Kind::Goodbye, 0, 0, 0, ""}, 0);
  }
  CHECK_THAT(coordinator_state.verdict(), Equals("barrier (call 0): rank 1 returned and will not arrive"));
  CHECK(count(coordinator_state.output(), control::Kind::Fail) == 1);
  control::CoordinatorState other(3);
  other.lost(1);
  CHECK_THAT(other.verdict(), Contains("rank 1 is gone: its process ended (its own output says why), or was killed"));
  control::CoordinatorState peaceful(2);
  for (int r : {0, 1}) {
    peaceful.take(r, {control::Kind::Goodbye, 0, 0, 0, ""}, 0);
    peaceful.lost(r);  // its connection ends after the goodbye
  }
  CHECK(peaceful.all_left());
  CHECK_FALSE(peaceful.failed());
}

TEST_CASE("a call of a device that is overdue: everyone is asked once, and who started fewer calls is named") {
  control::CoordinatorState coordinator_state(4);
  coordinator_state.take(0, overdue(1, 0.4), 10);
  coordinator_state.take(2, overdue(1, 0.4), 10.01);
  CHECK(count(coordinator_state.output(), control::Kind::Query) == 4);
  SECTION("by all answers, at once") {
    for (const int r : {0, 2, 3}) coordinator_state.take(r, state(2), 10.1);
    CHECK_FALSE(coordinator_state.failed());
    coordinator_state.take(1, state(1), 10.1);
    CHECK_THAT(coordinator_state.verdict(), Equals("all_reduce(Sum) of 8 float (call 1): rank 1 did not arrive within 0.4 s"));
  }
  SECTION("a rank that is stopped does not answer; the others need not wait for it for long") {
    for (const int r : {0, 1, 2}) coordinator_state.take(r, state(2), 10.1);
    CHECK(coordinator_state.next_due() < 10.4);
    coordinator_state.tick(10.4);
    CHECK_THAT(coordinator_state.verdict(),
               Equals("all_reduce(Sum) of 8 float (call 1): rank 3 does not answer (stopped, or out of reach)"));
  }
  SECTION("a rank waits elsewhere, another has left") {
    coordinator_state.take(1, {control::Kind::Goodbye, 0, 0, 0, ""}, 10.1);
    for (const int r : {0, 2}) coordinator_state.take(r, state(2), 10.1);
    coordinator_state.take(3, state(1, "barrier (call 7)"), 10.1);
    CHECK_THAT(
        coordinator_state.verdict(),
        Equals("all_reduce(Sum) of 8 float (call 1): rank 1 returned and will not arrive; rank 3 waits in barrier (call 7)"));
  }
  SECTION("all are there") {
    for (const int r : {0, 1, 2, 3}) coordinator_state.take(r, state(2), 10.1);
    CHECK_THAT(coordinator_state.verdict(),
               Contains("all ranks have arrived, and it has not ended within 0.4 s: look at the GPUs and the network"));
  }
}

TEST_CASE("groups name ranks by their own count, and strangers cannot speak for them") {
  control::CoordinatorState coordinator_state(4);
  for (const int r : {3, 1}) coordinator_state.take(r, open(9, {3, 1}), 0);
  coordinator_state.take(3, exchange(0, 9, 1), 0);
  CHECK_THROWS_AS(coordinator_state.take(0, exchange(0, 9), 0), sk::CommError);
  CHECK_THROWS_AS(coordinator_state.take(0, exchange(0, 8), 0), sk::CommError);
  CHECK_THROWS_AS(coordinator_state.take(0, open(7, {0, 0}), 0), sk::CommError);
  CHECK_THROWS_AS(coordinator_state.take(0, open(7, {0, 4}), 0), sk::CommError);
  CHECK_THROWS_AS(coordinator_state.take(0, open(7, {1}), 0), sk::CommError);
  CHECK_THROWS_AS(coordinator_state.take(0, open(7, {}), 0), sk::CommError);
  CHECK_THROWS_AS(coordinator_state.take(0, {control::Kind::Gathered, 0, 0, 0, ""}, 0), sk::CommError);
  coordinator_state.tick(2);
  CHECK_THAT(coordinator_state.verdict(),
             Equals("barrier (call 0): rank 1 did not arrive within 1 s"));  // rank 1 of the group is rank 1 here too
}

TEST_CASE("the watch over calls: one question a call, one abort") {
  control::CallWatch watch;
  sk::comm::Signature s;
  CHECK_FALSE(watch.overdue(100, 1).has_value());
  CHECK(watch.start(s, 0) == 0);
  CHECK(watch.start(s, 0) == 1);
  CHECK_FALSE(watch.overdue(0.9, 1).has_value());
  const auto first = watch.overdue(1.0, 1);
  REQUIRE(first.has_value());
  CHECK(first->call == 0);
  CHECK(first->what == "barrier");
  CHECK_FALSE(watch.overdue(5, 1).has_value());  // asked already
  watch.finish_oldest(5);                        // it came after all; the next began its turn only now
  CHECK_FALSE(watch.overdue(5.9, 1).has_value());
  CHECK(watch.overdue(6, 1)->call == 1);
  CHECK(watch.waits_in() == "barrier (call 1)");
  CHECK(watch.fail("rank 1 did not arrive"));
  CHECK_FALSE(watch.fail("another"));
  CHECK(watch.message() == "rank 1 did not arrive");
  CHECK_FALSE(watch.running());
  CHECK(watch.started() == 2);
  CHECK_FALSE(watch.overdue(100, 1).has_value());
}
