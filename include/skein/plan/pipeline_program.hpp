// SPDX-License-Identifier: Apache-2.0
// What one process does of a pipeline schedule, line by line: its ranks' steps in their order, and for each the slot that holds
// the micro-batch, what comes from and goes to another process, which input is asked for ahead, and which version of the weights
// is read or kept. A pure function of the table; an interpreter executes the lines and decides nothing.
#pragma once
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "schedule_check.hpp"

namespace skein::inline SKEIN_ABI::plan {

/// One line of a process's program: a task of a schedule, and the messages and memory that belong to it.
struct PipelineLine {
  Step step{};
  int slot = -1;          ///< of the micro-batch in its stage
  bool receives = false;  ///< what it needs comes from another process
  bool sends = false;     ///< what it makes goes to another process
  bool asks = false;      ///< that was not asked for yet
  int ahead = -1;         ///< the later line whose input is asked for before this one runs
  int to = -1;            ///< the slot of the neighbouring stage of this process that takes what it makes
  int weights = -1;       ///< forward: the kept weights that it reads; -1: the newest
  int keeps = -1;         ///< update: the weights before it are kept there
};

/// What one process of a pipeline does in a step, line by line, and what it has to keep for that.
struct PipelineProgram {
  std::vector<PipelineLine> lines{};
  std::vector<int> slots{}, kept{};  ///< of each stage: micro-batches in flight, older versions of the weights
  int micros = 0;
  bool synchronous = true, halves = false;  ///< one update a stage at the end; is some backward split
};

/// For which process, and for what, a program is made of a schedule.
struct PipelineProgramOptions {
  int first_rank = 0, last_rank = 1;  ///< the process has the schedule's ranks [first, last)
  bool forward_only = false;          ///< evaluation: the schedule's forwards alone
  bool vertical_sync = true;          ///< a micro-batch reads the same version in all stages, the one that the first stage had
};

namespace detail {
/// The lowest free number.
class Numbers {
 public:
  int take() {
    for (std::size_t i = 0; i < used_.size(); ++i)
      if (!used_[i]) return used_[i] = true, static_cast<int>(i);
    used_.push_back(true);
    return static_cast<int>(used_.size()) - 1;
  }
  void give(int i) { used_[static_cast<std::size_t>(i)] = false; }
  int most() const { return static_cast<int>(used_.size()); }

 private:
  std::vector<bool> used_;
};

inline std::vector<Step> steps_of(const Schedule& s, const PipelineProgramOptions& o) {
  std::vector<Step> order;
  if (o.last_rank == o.first_rank + 1) {
    order = s.order[static_cast<std::size_t>(o.first_rank)];
  } else {  // as they would run at the same time, one thread after the other
    std::vector<TimedStep> timed;
    (void)play(s, TaskLengths{}, [&](const TimedStep& t) {
      if (t.rank >= o.first_rank && t.rank < o.last_rank) timed.push_back(t);
    });
    std::stable_sort(timed.begin(), timed.end(), [](const TimedStep& a, const TimedStep& b) { return a.begin < b.begin; });
    for (const TimedStep& t : timed) order.push_back(t.step);
    if (s.synchronous) std::stable_partition(order.begin(), order.end(), [](const Step& x) { return x.task != Task::update; });
  }
  if (o.forward_only) std::erase_if(order, [](const Step& x) { return x.task != Task::forward; });
  return order;
}
}  // namespace detail

/// The lines of one process. Throws ArgumentError for a table that is not sound (with its sentence), and for one whose
/// synchronous updates are not the last steps of a rank.
inline PipelineProgram pipeline_program(const Schedule& s, const PipelineProgramOptions& o) {
  if (const ScheduleReport r = play(s, TaskLengths{}, [](const TimedStep&) {}); !r.sound())
    throw ArgumentError(text("pipeline: rank {}, {} of stage {}, micro-batch {}: {}", r.rank, name_of(r.at.task), r.at.stage,
                             r.at.micro, sentence_of(r.fault)));
  const auto own = [&](int stage) { return s.rank_of(stage) >= o.first_rank && s.rank_of(stage) < o.last_rank; };
  const auto index = [&](int stage, int micro) { return static_cast<std::size_t>(stage * s.micros + micro); };
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  const std::vector<Step> order = detail::steps_of(s, o);

  PipelineProgram p;
  p.micros = s.micros;
  p.synchronous = s.synchronous;
  // Which version each forward reads: updates of its stage before it.
  std::vector<int> wanted(at(s.stages * s.micros), 0), updates(at(s.stages), 0);
  if (!s.synchronous && !o.forward_only) {
    for (const Step& x : s.order[at(s.rank_of(0))]) {
      if (x.stage == 0 && x.task == Task::update) ++updates[0];
      if (x.stage == 0 && x.task == Task::forward)
        for (int stage = 0; stage < s.stages; ++stage) wanted[index(stage, x.micro)] = updates[0];
    }
    if (!o.vertical_sync) {
      std::fill(updates.begin(), updates.end(), 0);
      for (const Step& x : order) {
        if (x.task == Task::update) ++updates[at(x.stage)];
        if (x.task == Task::forward) wanted[index(x.stage, x.micro)] = updates[at(x.stage)];
      }
    }
  }
  std::vector<std::vector<int>> last_use(at(s.stages), std::vector<int>(at(s.micros + 1), -1));  // of a version: the line
  for (std::size_t i = 0; i < order.size(); ++i)
    if (order[i].task != Task::update)
      last_use[at(order[i].stage)][at(wanted[index(order[i].stage, order[i].micro)])] = static_cast<int>(i);

  std::vector<int> slot(at(s.stages * s.micros), -1), version(at(s.stages), 0);
  std::vector<std::vector<int>> kept(at(s.stages), std::vector<int>(at(s.micros + 1), -1));
  std::vector<detail::Numbers> slots(at(s.stages)), stashes(at(s.stages));
  const auto take = [&](int stage, int micro) { return slot[index(stage, micro)] = slots[at(stage)].take(); };
  const auto comes = [&](const Step& x) { return x.task == Task::forward && x.stage > 0 && !own(x.stage - 1); };
  int asked = -1;  // the last line whose input was asked for ahead
  bool updated = false;
  for (std::size_t i = 0; i < order.size(); ++i) {
    PipelineLine line{.step = order[i]};
    const int stage = line.step.stage, micro = line.step.micro;
    const Task task = line.step.task;
    if (task == Task::update) updated = true;
    else if (updated && s.synchronous)
      throw ArgumentError(
          text("pipeline: a synchronous schedule's updates must be the last steps of each rank: here {} of stage {} "
               "follows one",
               name_of(task), stage));
    // One input is asked for ahead of its turn, so that its sender need not wait.
    if (comes(line.step) && slot[index(stage, micro)] < 0) {
      line.asks = true;
      take(stage, micro);
    }
    if (task != Task::update && asked <= static_cast<int>(i)) {
      std::size_t ahead = i + 1;
      while (ahead < order.size() && !comes(order[ahead])) ++ahead;
      if (ahead < order.size()) {
        line.ahead = asked = static_cast<int>(ahead);
        take(order[ahead].stage, order[ahead].micro);
      }
    }
    if (task == Task::forward) {
      if (slot[index(stage, micro)] < 0) take(stage, micro);
      line.receives = comes(line.step);
      line.sends = stage + 1 < s.stages && !own(stage + 1);
      if (stage + 1 < s.stages && own(stage + 1)) line.to = take(stage + 1, micro);
      const int v = wanted[index(stage, micro)];
      if (v > version[at(stage)])
        throw ArgumentError(
            text("pipeline: vertical_sync: micro-batch {} has seen {} updates in the first stage, stage {} has made {}: "
                 "another order, or .vertical_sync = false",
                 micro, v, stage, version[at(stage)]));
      if (v < version[at(stage)]) line.weights = kept[at(stage)][at(v)];
    }
    if (task == Task::backward || task == Task::input_gradient) {
      line.receives = stage + 1 < s.stages && !own(stage + 1);
      line.sends = stage > 0 && !own(stage - 1);
      if (stage > 0 && own(stage - 1)) line.to = slot[index(stage - 1, micro)];
    }
    if (task == Task::input_gradient) p.halves = true;
    if (task == Task::update) {
      int& v = version[at(stage)];
      if (last_use[at(stage)][at(v)] > static_cast<int>(i)) line.keeps = kept[at(stage)][at(v)] = stashes[at(stage)].take();
      ++v;
    } else {
      line.slot = slot[index(stage, micro)];
      const int v = wanted[index(stage, micro)];
      if (int& k = kept[at(stage)][at(v)]; k >= 0 && last_use[at(stage)][at(v)] == static_cast<int>(i))
        stashes[at(stage)].give(std::exchange(k, -1));
    }
    p.lines.push_back(line);
    if (task == Task::backward || task == Task::weight_gradient || o.forward_only) slots[at(stage)].give(line.slot);
  }
  for (int stage = 0; stage < s.stages; ++stage) {
    p.slots.push_back(slots[at(stage)].most());
    p.kept.push_back(stashes[at(stage)].most());
  }
  return p;
}

}  // namespace skein::inline SKEIN_ABI::plan
