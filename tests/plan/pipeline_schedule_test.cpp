// SPDX-License-Identifier: Apache-2.0
#include <skein/plan/schedule_check.hpp>
#include <skein/plan/timeline.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

using namespace skein::plan;

// Provable by the compiler, as a program's own table would be.
static_assert(check(gpipe(4, 8)).sound());
static_assert(check(one_f_one_b(4, 8)).live_activations == 4);
static_assert(check(gpipe(4, 8)).live_activations == 8);
static_assert(check(one_f_one_b(2, 3)).messages == 6);
static_assert(check(zero_bubble(4, 8)).bubble < check(one_f_one_b(4, 8)).bubble);
static_assert(check(pipedream(3, 6)).weight_versions == 3);

TEST_CASE("every schedule is sound, with the bubble and the memory of its formula, for all sizes") {
  for (int ranks = 1; ranks <= 8; ++ranks)
    for (int micros = 1; micros <= 32; ++micros) {
      INFO(ranks << " ranks, " << micros << " micro-batches");
      const double flush = static_cast<double>(ranks - 1) / (micros + ranks - 1);
      const ScheduleReport g = check(gpipe(ranks, micros)), f = check(one_f_one_b(ranks, micros)),
                           p = check(pipedream(ranks, micros));
      REQUIRE(g.sound());
      REQUIRE(f.sound());
      REQUIRE(p.sound());
      CHECK(g.bubble == Approx(flush).margin(1e-12).epsilon(0));
      CHECK(f.bubble == Approx(flush).margin(1e-12).epsilon(0));
      CHECK(g.live_activations == micros);
      CHECK(f.live_activations == std::min(ranks, micros));
      CHECK(p.weight_versions == std::min(ranks, micros));
      for (const ScheduleReport& r : {g, f, p}) CHECK(r.messages == 2L * (ranks - 1) * micros);

      const ScheduleReport one = check(unpipelined(ranks, micros));
      REQUIRE(one.sound());
      CHECK(one.length == Approx(3.0 * ranks * micros));
      CHECK(one.live_activations == 1);

      const ScheduleReport z = check(zero_bubble(ranks, micros));
      REQUIRE(z.sound());
      CHECK(z.live_activations <= ranks);
      CHECK(z.bubble <= f.bubble + 1e-12);
      if (micros >= 2 * ranks) CHECK(z.length == Approx(3.0 * micros + ranks - 1));  // ZB-H1's: a third of the flush

      for (int chunks = 2; chunks <= 4; ++chunks) {
        INFO(chunks << " stages a rank");
        const ScheduleReport i = check(interleaved(ranks, chunks, micros));
        REQUIRE(i.sound());
        CHECK(i.messages == (ranks > 1 ? 2L * (ranks * chunks - 1) * micros : 0));
        if (micros % ranks == 0)
          CHECK(i.bubble == Approx(static_cast<double>(ranks - 1) / (chunks * micros + ranks - 1)).margin(1e-12).epsilon(0));
      }
    }
}

TEST_CASE("a table of no ranks, stages or micro-batches is refused, not made") {
  for (const int none : {0, -1, -2}) {
    INFO(none);
    const Schedule tables[] = {interleaved(none, 1, 4),    interleaved(4, none, 4), interleaved(2, 2, none),
                               interleaved(none, none, 4), gpipe(none, 4),          zero_bubble(none, 4),
                               one_f_one_b(2, none),       pipedream(none, 2)};
    for (const Schedule& s : tables) CHECK(check(s).fault == ScheduleFault::wrong_shape);
  }
}

TEST_CASE("a table in another order is refused, or costs something else") {
  std::mt19937 random(7);
  const Schedule good = one_f_one_b(3, 5);
  const ScheduleReport before = check(good);
  int refused = 0, other = 0;
  for (int turn = 0; turn < 400; ++turn) {
    Schedule s = good;
    std::vector<Step>& order = s.order[random() % s.order.size()];
    const std::size_t a = random() % order.size(), b = random() % order.size();
    if (order[a] == order[b]) continue;
    std::swap(order[a], order[b]);
    const ScheduleReport after = check(s);
    refused += !after.sound();
    other += after.sound() && (after.length != before.length || after.live_activations != before.live_activations);
  }
  CHECK(refused > 50);
  CHECK(other > 20);
}

TEST_CASE("what is wrong with a table is named, with rank and step") {
  Schedule s = gpipe(2, 2);
  SECTION("missing") {
    s.order[1].erase(s.order[1].begin());
    CHECK(check(s).fault == ScheduleFault::missing);
    CHECK(check(s).at == Step{Task::forward, 1, 0});
    CHECK(check(s).rank == 1);
  }
  SECTION("twice") {
    s.order[0].push_back(s.order[0].front());
    CHECK(check(s).fault == ScheduleFault::twice);
  }
  SECTION("wrong rank") {
    s.order[0].push_back({Task::forward, 1, 0});
    CHECK(check(s).fault == ScheduleFault::wrong_rank);
  }
  SECTION("no such micro-batch") {
    s.order[0].push_back({Task::forward, 0, 2});
    CHECK(check(s).fault == ScheduleFault::no_such_task);
  }
  SECTION("a backward and its half") {
    s.order[0].push_back({Task::weight_gradient, 0, 0});
    CHECK(check(s).fault == ScheduleFault::no_such_task);
  }
  SECTION("deadlock") {
    std::swap(s.order[1].front(), s.order[1][2]);  // the gradient before its forward
    CHECK(check(s).fault == ScheduleFault::deadlock);
  }
  SECTION("an update before its gradients") {
    std::swap(s.order[0].front(), s.order[0].back());
    CHECK(check(s).fault == ScheduleFault::deadlock);
  }
  SECTION("an order is missing, or a number is none") {
    s.order.pop_back();
    CHECK(check(s).fault == ScheduleFault::wrong_shape);
    s = gpipe(2, 2);
    s.order.push_back({});
    CHECK(check(s).fault == ScheduleFault::wrong_shape);
    s = gpipe(2, 2);
    s.ranks = 0;
    CHECK(check(s).fault == ScheduleFault::wrong_shape);
    CHECK(check(gpipe(2, 0)).fault == ScheduleFault::wrong_shape);
  }
  CHECK_FALSE(sentence_of(check(s).fault).empty());
}

TEST_CASE("lengths of tasks and messages lengthen a schedule as they should") {
  const TaskLengths lengths{.forward = 2, .input_gradient = 3, .weight_gradient = 1, .message = 0.5};
  CHECK(check(gpipe(1, 3), lengths).length == Approx(3 * 6));
  CHECK(check(unpipelined(2, 1), lengths).length == Approx(2 * 6 + 2 * 0.5));
  CHECK(check(gpipe(2, 4), lengths).waiting_messages >= 1);
  const StageLengths slow{{{.forward = 1}, {.forward = 5}}};
  CHECK(check(gpipe(2, 4)).waiting_messages == 1);
  CHECK(check(gpipe(2, 4), slow).length == Approx(1 + 4 * (5 + 2) + 2));
  // The slow second stage waits for one forward, then works without a gap; the first one has a backward to do when it is done.
  CHECK(timeline_of(gpipe(2, 4), slow).length() == Approx(1 + 4 * (5 + 2) + 2));
}

namespace {
/// Of each message at its arrival: how many have come to its rank and are not used yet.
template <class Lengths> int waiting_by_pairs(const Schedule& s, const Lengths& lengths) {
  std::vector<TimedStep> steps;
  (void)play(s, lengths, [&](const TimedStep& t) { steps.push_back(t); });
  struct Message {
    int to;
    double arrives, used;
  };
  std::vector<Message> messages;
  for (const TimedStep& from : steps)
    for (const TimedStep& to : steps) {
      const bool forward =
                     from.step.task == Task::forward && to.step.task == Task::forward && to.step.stage == from.step.stage + 1,
                 back = (from.step.task == Task::backward || from.step.task == Task::input_gradient) &&
                        to.step.task == from.step.task && to.step.stage == from.step.stage - 1;
      if ((forward || back) && to.step.micro == from.step.micro && to.rank != from.rank)
        messages.push_back({to.rank, from.end + lengths.message, to.begin});
    }
  int most = 0;
  for (const Message& m : messages)
    most = std::max(most, static_cast<int>(std::count_if(messages.begin(), messages.end(), [&](const Message& o) {
                      return o.to == m.to && o.arrives <= m.arrives && o.used >= m.arrives;
                    })));
  return most;
}
}  // namespace

TEST_CASE("messages that wait are counted as over all pairs of them, and in no time") {
  for (const TaskLengths& lengths : {TaskLengths{}, TaskLengths{.forward = 2, .input_gradient = 1, .message = 3.5},
                                     TaskLengths{.forward = 0, .weight_gradient = 4, .message = 0.25}})
    for (int ranks = 1; ranks <= 4; ++ranks)
      for (const int micros : {1, 2, 5, 9})
        for (const Schedule& s : {unpipelined(ranks, micros), gpipe(ranks, micros), one_f_one_b(ranks, micros),
                                  zero_bubble(ranks, micros), pipedream(ranks, micros), interleaved(ranks, 3, micros)}) {
          INFO(s.kind << ": " << ranks << " ranks, " << micros << " micro-batches");
          CHECK(check(s, lengths).waiting_messages == waiting_by_pairs(s, lengths));
        }
  StageLengths uneven{.message = 1.5};
  for (int stage = 0; stage < 12; ++stage)
    uneven.stages.push_back(
        {.forward = 1.0 + stage % 3, .input_gradient = 0.5 * (1 + stage % 4), .weight_gradient = 0.25 * stage});
  for (int ranks = 1; ranks <= 4; ++ranks)
    for (const Schedule& s : {gpipe(ranks, 9), one_f_one_b(ranks, 9), zero_bubble(ranks, 9), interleaved(ranks, 3, 9)}) {
      INFO(s.kind << ": " << ranks << " ranks");
      CHECK(check(s, uneven).waiting_messages == waiting_by_pairs(s, uneven));
    }
  const StageLengths slow{{{.forward = 1}, {.forward = 5}}};  // three outputs come while the first is worked on
  CHECK(check(gpipe(2, 4), slow).waiting_messages == 3);
  const ScheduleReport many = check(one_f_one_b(4, 200000));  // 1.2 million messages: their pairs would take an hour
  CHECK(many.messages == 6 * 200000);
  CHECK(many.waiting_messages <= 8);
}

TEST_CASE("lengths of fewer stages than a table has are refused") {
  const StageLengths one{{{1.0, 1.0, 1.0, 0.1}}, 0};
  CHECK_THROWS_WITH(timeline_of(gpipe(2, 4), one), Catch::Contains("a stage of the table has no lengths in .stages"));
}
