// SPDX-License-Identifier: Apache-2.0
// The proof of a pipeline schedule: plays the table with given task lengths. Finds what is missing, double, on the wrong rank or
// waits for ever, and counts what the table costs: length, bubble, live activations, waiting messages, stashed weights. Usable in
// static_assert.
#pragma once
#include "../core/error.hpp"
#include "pipeline_schedule.hpp"

namespace skein::inline SKEIN_ABI::plan {

/// Lengths of the tasks of one stage, in any unit. `backward` is the sum of its halves. Messages between ranks take `message`.
struct TaskLengths {
  double forward = 1, input_gradient = 1, weight_gradient = 1, update = 0, message = 0;
  constexpr double of(Task t) const {
    switch (t) {
      case Task::forward:
        return forward;
      case Task::backward:
        return input_gradient + weight_gradient;
      case Task::input_gradient:
        return input_gradient;
      case Task::weight_gradient:
        return weight_gradient;
      case Task::update:
        return update;
    }
    return 0;
  }
};

/// Lengths of each stage's own: measured ones, say.
struct StageLengths {
  std::vector<TaskLengths> stages{};
  double message = 0;
};

namespace detail {
constexpr double length_of(const TaskLengths& lengths, const Step& s) { return lengths.of(s.task); }
constexpr double length_of(const StageLengths& lengths, const Step& s) {
  if (static_cast<std::size_t>(s.stage) >= lengths.stages.size())
    throw ArgumentError("StageLengths: a stage of the table has no lengths in .stages: give those of each stage");
  return lengths.stages[static_cast<std::size_t>(s.stage)].of(s.task);
}
}  // namespace detail

enum class ScheduleFault { none, wrong_shape, wrong_rank, no_such_task, twice, missing, deadlock };

/// The fault in a sentence.
constexpr std::string_view sentence_of(ScheduleFault f) {
  switch (f) {
    case ScheduleFault::none:
      return "the schedule is complete and free of deadlock";
    case ScheduleFault::wrong_shape:
      return "a table has one order a rank, and at least one rank, stage and micro-batch";
    case ScheduleFault::wrong_rank:
      return "a rank has a task of a stage that it does not hold";
    case ScheduleFault::no_such_task:
      return "a task names a stage or micro-batch that does not exist, or mixes backward with its halves";
    case ScheduleFault::twice:
      return "a task is there twice";
    case ScheduleFault::missing:
      return "a task is missing";
    case ScheduleFault::deadlock:
      return "every rank waits for another: the schedule is a deadlock";
  }
  return {};
}

/// When a step of a table runs.
struct TimedStep {
  Step step{};
  int rank = 0;
  double begin = 0, end = 0;
};

/// What check() found.
struct ScheduleReport {
  ScheduleFault fault = ScheduleFault::none;
  Step at{};  ///< the first step that is at fault
  int rank = -1;
  double length = 0;         ///< of the whole step
  double bubble = 0;         ///< share of ranks * length in which a rank does nothing
  int live_activations = 0;  ///< most micro-batches that any rank keeps at a time, over its stages
  int waiting_messages = 0;  ///< most messages that have come to a rank and are not used yet
  int weight_versions = 1;   ///< most versions of a stage's weights that are in use at a time
  long messages = 0;         ///< between ranks

  constexpr bool sound() const { return fault == ScheduleFault::none; }
};

namespace detail {
/// Ends of the tasks played so far, -1 before; index (task, stage, micro).
class Played {
 public:
  constexpr Played(const Schedule& s)
      : stages_(s.stages), micros_(s.micros), end_(static_cast<std::size_t>(5L * s.stages * s.micros), -1.0) {}
  constexpr double& end(Task t, int stage, int micro) {
    return end_[static_cast<std::size_t>((static_cast<long>(t) * stages_ + stage) * micros_ + micro)];
  }
  /// When the gradient of the stage's input was there: -1 before.
  constexpr double back(int stage, int micro) {
    const double whole = end(Task::backward, stage, micro);
    return whole >= 0 ? whole : end(Task::input_gradient, stage, micro);
  }

 private:
  int stages_, micros_;
  std::vector<double> end_;
};

constexpr ScheduleReport fault(ScheduleFault f, int rank, Step at) {
  ScheduleReport r;
  r.fault = f;
  r.rank = rank;
  r.at = at;
  return r;
}

/// Every task once and on its rank.
constexpr ScheduleReport check_complete(const Schedule& s) {
  if (s.ranks < 1 || s.stages < 1 || s.micros < 1 || s.order.size() != static_cast<std::size_t>(s.ranks))
    return fault(ScheduleFault::wrong_shape, -1, {});
  std::vector<int> seen(static_cast<std::size_t>(5L * s.stages * s.micros), 0);
  const auto count = [&](Task t, int stage, int micro) -> int& {
    return seen[static_cast<std::size_t>((static_cast<long>(t) * s.stages + stage) * s.micros + micro)];
  };
  for (int r = 0; r < s.ranks; ++r)
    for (const Step& step : s.order[static_cast<std::size_t>(r)]) {
      if (step.stage < 0 || step.stage >= s.stages || step.micro < 0 || step.micro >= s.micros)
        return fault(ScheduleFault::no_such_task, r, step);
      if (s.rank_of(step.stage) != r) return fault(ScheduleFault::wrong_rank, r, step);
      if (++count(step.task, step.stage, step.micro) > 1) return fault(ScheduleFault::twice, r, step);
    }
  for (int stage = 0; stage < s.stages; ++stage) {
    int updates = 0;
    for (int m = 0; m < s.micros; ++m) {
      const int r = s.rank_of(stage), whole = count(Task::backward, stage, m), input = count(Task::input_gradient, stage, m),
                weight = count(Task::weight_gradient, stage, m);
      if (count(Task::forward, stage, m) == 0) return fault(ScheduleFault::missing, r, {Task::forward, stage, m});
      if (whole && (input || weight)) return fault(ScheduleFault::no_such_task, r, {Task::backward, stage, m});
      if (!whole && input == 0 && weight == 0) return fault(ScheduleFault::missing, r, {Task::backward, stage, m});
      if (!whole && input == 0) return fault(ScheduleFault::missing, r, {Task::input_gradient, stage, m});
      if (!whole && weight == 0) return fault(ScheduleFault::missing, r, {Task::weight_gradient, stage, m});
      updates += count(Task::update, stage, m);
    }
    if (s.synchronous ? updates != 1 : updates != s.micros)
      return fault(ScheduleFault::missing, s.rank_of(stage), {Task::update, stage, s.micros - 1});
  }
  return {};
}

/// When what a step needs is there: -1 where something was not played yet.
template <class Lengths> constexpr double ready_at(const Schedule& s, const Lengths& lengths, Played& played, const Step& step) {
  double ready = 0;
  const auto need = [&](double end) { ready = end < 0 || ready < 0 ? -1 : (end > ready ? end : ready); };
  const auto need_of = [&](double end, int from) {
    need(end < 0 || s.rank_of(from) == s.rank_of(step.stage) ? end : end + lengths.message);
  };
  switch (step.task) {
    case Task::forward:
      if (step.stage > 0) need_of(played.end(Task::forward, step.stage - 1, step.micro), step.stage - 1);
      break;
    case Task::backward:
    case Task::input_gradient:
      need(played.end(Task::forward, step.stage, step.micro));
      if (step.stage + 1 < s.stages) need_of(played.back(step.stage + 1, step.micro), step.stage + 1);
      break;
    case Task::weight_gradient:
      need(played.end(Task::input_gradient, step.stage, step.micro));
      break;
    case Task::update:
      for (int m = s.synchronous ? 0 : step.micro; m <= (s.synchronous ? s.micros - 1 : step.micro); ++m) {
        const double whole = played.end(Task::backward, step.stage, m);
        need(whole >= 0 ? whole : played.end(Task::weight_gradient, step.stage, m));
      }
      break;
  }
  return ready;
}

/// The stage that gets what a step has made, or -1.
constexpr int next_stage(const Schedule& s, const Step& step) {
  if (step.task == Task::forward) return step.stage + 1 < s.stages ? step.stage + 1 : -1;
  return step.task == Task::backward || step.task == Task::input_gradient ? step.stage - 1 : -1;
}
}  // namespace detail

/// Plays the table: each rank takes its steps in order, each as soon as what it needs is there. Calls visit(TimedStep) for each
/// step in the order in which they are played (by rank within a round). Forward of a stage needs that of the stage before; a
/// gradient needs the stage's forward and the gradient of the stage behind it; an update of a synchronous schedule needs all
/// gradients of its stage. What is kept and what waits, check() counts: of live activations, waiting messages and versions of
/// weights the report says nothing.
template <class Lengths, class Visit> constexpr ScheduleReport play(const Schedule& s, const Lengths& lengths, Visit&& visit) {
  if (ScheduleReport incomplete = detail::check_complete(s); !incomplete.sound()) return incomplete;
  detail::Played played(s);
  std::vector<std::size_t> next(static_cast<std::size_t>(s.ranks), 0);
  std::vector<double> free(static_cast<std::size_t>(s.ranks), 0);
  ScheduleReport report;
  double busy = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (int r = 0; r < s.ranks; ++r) {
      const std::vector<Step>& order = s.order[static_cast<std::size_t>(r)];
      for (std::size_t& n = next[static_cast<std::size_t>(r)]; n < order.size(); ++n) {
        const Step step = order[n];
        const double ready = detail::ready_at(s, lengths, played, step);
        if (ready < 0) break;
        double& at = free[static_cast<std::size_t>(r)];
        const double begin = ready > at ? ready : at, end = begin + detail::length_of(lengths, step);
        played.end(step.task, step.stage, step.micro) = at = end;
        busy += end - begin;
        if (end > report.length) report.length = end;
        if (const int to = detail::next_stage(s, step); to >= 0) report.messages += s.rank_of(to) != r;
        visit(TimedStep{step, r, begin, end});
        moved = true;
      }
    }
  }
  for (int r = 0; r < s.ranks; ++r)
    if (const std::size_t n = next[static_cast<std::size_t>(r)]; n < s.order[static_cast<std::size_t>(r)].size())
      return detail::fault(ScheduleFault::deadlock, r, s.order[static_cast<std::size_t>(r)][n]);
  if (report.length > 0) report.bubble = 1 - busy / (s.ranks * report.length);
  return report;
}

namespace detail {
/// Memory follows each rank's own order: no clock is needed for it.
constexpr void count_live(const Schedule& s, ScheduleReport& report) {
  for (int r = 0; r < s.ranks; ++r) {
    int live = 0;
    std::vector<int> in_flight(static_cast<std::size_t>(s.stages), 0);
    for (const Step& step : s.order[static_cast<std::size_t>(r)]) {
      int& flying = in_flight[static_cast<std::size_t>(step.stage)];
      if (step.task == Task::forward) ++live, ++flying;
      if (live > report.live_activations) report.live_activations = live;
      if (!s.synchronous && flying > report.weight_versions) report.weight_versions = flying;
      if (step.task == Task::backward || step.task == Task::weight_gradient) --live, --flying;
    }
  }
}
/// The stage whose output or gradient a step reads, or -1.
constexpr int stage_read(const Schedule& s, const Step& step) {
  if (step.task == Task::forward) return step.stage - 1;
  const bool back = step.task == Task::backward || step.task == Task::input_gradient;
  return back && step.stage + 1 < s.stages ? step.stage + 1 : -1;
}
/// A message needs a buffer from its arrival to the beginning of the task that uses it. Outputs that come to a rank are all from
/// one other, gradients likewise, in the order of their times: so are the tasks that use them.
constexpr int most_waiting(const Schedule& s, const std::vector<TimedStep>& steps, double message_length) {
  struct Times {
    std::vector<double> outputs{}, gradients{}, used{};
  };
  std::vector<Times> of(static_cast<std::size_t>(s.ranks));
  const auto elsewhere = [&](int stage, int rank) { return stage >= 0 && s.rank_of(stage) != rank; };
  for (const TimedStep& t : steps) {
    if (elsewhere(stage_read(s, t.step), t.rank)) of[static_cast<std::size_t>(t.rank)].used.push_back(t.begin);
    const int to = next_stage(s, t.step);
    if (!elsewhere(to, t.rank)) continue;
    Times& there = of[static_cast<std::size_t>(s.rank_of(to))];
    (t.step.task == Task::forward ? there.outputs : there.gradients).push_back(t.end + message_length);
  }
  std::size_t most = 0;
  for (const Times& t : of)
    for (std::size_t i = 0, j = 0, gone = 0; i < t.outputs.size() || j < t.gradients.size();) {
      const bool output = j == t.gradients.size() || (i < t.outputs.size() && t.outputs[i] <= t.gradients[j]);
      const double now = output ? t.outputs[i++] : t.gradients[j++];
      while (gone < t.used.size() && t.used[gone] < now) ++gone;
      if (i + j - gone > most) most = i + j - gone;
    }
  return static_cast<int>(most);
}
}  // namespace detail

/// The proof and the costs of a table: of tasks that are as long in each stage, TaskLengths, or of StageLengths.
template <class Lengths = TaskLengths> constexpr ScheduleReport check(const Schedule& s, const Lengths& lengths = {}) {
  std::vector<TimedStep> steps;
  ScheduleReport report = play(s, lengths, [&](const TimedStep& t) { steps.push_back(t); });
  if (!report.sound()) return report;
  detail::count_live(s, report);
  report.waiting_messages = detail::most_waiting(s, steps, lengths.message);
  return report;
}

}  // namespace skein::inline SKEIN_ABI::plan
