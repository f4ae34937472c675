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

/// Makes the lines of a process, in the order of its steps. What is remembered of a (stage, micro-batch) lies in one vector.
class PipelineProgramBuilder {
 public:
  PipelineProgramBuilder(const Schedule& s, const PipelineProgramOptions& o)
      : s_(s), o_(o), order_(steps_of(s, o)), wanted_(count(s.stages * s.micros), 0), slot_(count(s.stages * s.micros), -1),
        version_(count(s.stages), 0), last_use_(count(s.stages), std::vector<int>(count(s.micros + 1), -1)), kept_(last_use_),
        slots_(count(s.stages)), stashes_(count(s.stages)) {
    p_.micros = s.micros;
    p_.synchronous = s.synchronous;
    if (!s.synchronous && !o.forward_only) find_versions();
    for (std::size_t i = 0; i < order_.size(); ++i)
      if (order_[i].task != Task::update) last_use_of(order_[i].stage, wanted(order_[i])) = static_cast<int>(i);
  }
  PipelineProgram build() {
    for (std::size_t i = 0; i < order_.size(); ++i) p_.lines.push_back(line(i));
    for (int stage = 0; stage < s_.stages; ++stage) {
      p_.slots.push_back(slots_[count(stage)].most());
      p_.kept.push_back(stashes_[count(stage)].most());
    }
    return std::move(p_);
  }

 private:
  static std::size_t count(int n) { return static_cast<std::size_t>(n); }
  bool own(int stage) const { return s_.rank_of(stage) >= o_.first_rank && s_.rank_of(stage) < o_.last_rank; }
  bool comes(const Step& x) const { return x.task == Task::forward && x.stage > 0 && !own(x.stage - 1); }
  int& slot(int stage, int micro) { return slot_[count(stage * s_.micros + micro)]; }
  int& wanted(const Step& x) { return wanted_[count(x.stage * s_.micros + x.micro)]; }
  int& last_use_of(int stage, int version) { return last_use_[count(stage)][count(version)]; }
  int& kept(int stage, int version) { return kept_[count(stage)][count(version)]; }
  int take(int stage, int micro) { return slot(stage, micro) = slots_[count(stage)].take(); }

  /// Which version each forward reads: the updates before it, of the first stage or of its own.
  void find_versions() {
    std::vector<int> updates(count(s_.stages), 0);
    for (const Step& x : s_.order[count(s_.rank_of(0))]) {
      if (x.stage == 0 && x.task == Task::update) ++updates[0];
      if (x.stage == 0 && x.task == Task::forward)
        for (int stage = 0; stage < s_.stages; ++stage) wanted({Task::forward, stage, x.micro}) = updates[0];
    }
    if (o_.vertical_sync) return;
    std::fill(updates.begin(), updates.end(), 0);
    for (const Step& x : order_) {
      if (x.task == Task::update) ++updates[count(x.stage)];
      if (x.task == Task::forward) wanted(x) = updates[count(x.stage)];
    }
  }

  PipelineLine line(std::size_t i) {
    PipelineLine line{.step = order_[i]};
    const auto [task, stage, micro] = line.step;
    if (task == Task::update) updated_ = true;
    else if (updated_ && s_.synchronous)
      throw ArgumentError(
          text("pipeline: a synchronous schedule's updates must be the last steps of each rank: here {} of stage {} "
               "follows one",
               name_of(task), stage));
    ask(line, i);
    if (task == Task::forward) forward(line);
    if (task == Task::backward || task == Task::input_gradient) backward(line);
    if (task == Task::input_gradient) p_.halves = true;
    if (task == Task::update) update(line, i);
    else use(line, i);
    if (task == Task::backward || task == Task::weight_gradient || o_.forward_only) slots_[count(stage)].give(line.slot);
    return line;
  }
  /// One input is asked for ahead of its turn, so that its sender need not wait.
  void ask(PipelineLine& line, std::size_t i) {
    if (comes(line.step) && slot(line.step.stage, line.step.micro) < 0) {
      line.asks = true;
      take(line.step.stage, line.step.micro);
    }
    if (line.step.task == Task::update || asked_ > static_cast<int>(i)) return;
    std::size_t ahead = i + 1;
    while (ahead < order_.size() && !comes(order_[ahead])) ++ahead;
    if (ahead == order_.size()) return;
    line.ahead = asked_ = static_cast<int>(ahead);
    take(order_[ahead].stage, order_[ahead].micro);
  }
  void forward(PipelineLine& line) {
    const int stage = line.step.stage, micro = line.step.micro, v = wanted(line.step), now = version_[count(stage)];
    if (slot(stage, micro) < 0) take(stage, micro);
    line.receives = comes(line.step);
    line.sends = stage + 1 < s_.stages && !own(stage + 1);
    if (stage + 1 < s_.stages && own(stage + 1)) line.to = take(stage + 1, micro);
    if (v > now)
      throw ArgumentError(
          text("pipeline: vertical_sync: micro-batch {} has seen {} updates in the first stage, stage {} has made {}: "
               "another order, or .vertical_sync = false",
               micro, v, stage, now));
    if (v < now) line.weights = kept(stage, v);
  }
  void backward(PipelineLine& line) {
    const int stage = line.step.stage;
    line.receives = stage + 1 < s_.stages && !own(stage + 1);
    line.sends = stage > 0 && !own(stage - 1);
    if (stage > 0 && own(stage - 1)) line.to = slot(stage - 1, line.step.micro);
  }
  /// The weights before it are kept where a later line reads them.
  void update(PipelineLine& line, std::size_t i) {
    int& v = version_[count(line.step.stage)];
    if (last_use_of(line.step.stage, v) > static_cast<int>(i))
      line.keeps = kept(line.step.stage, v) = stashes_[count(line.step.stage)].take();
    ++v;
  }
  void use(PipelineLine& line, std::size_t i) {
    const int stage = line.step.stage, v = wanted(line.step);
    line.slot = slot(stage, line.step.micro);
    if (int& k = kept(stage, v); k >= 0 && last_use_of(stage, v) == static_cast<int>(i))
      stashes_[count(stage)].give(std::exchange(k, -1));
  }

  const Schedule& s_;
  PipelineProgramOptions o_;
  std::vector<Step> order_;
  PipelineProgram p_;
  std::vector<int> wanted_, slot_, version_;       // of a (stage, micro-batch): version to be read, slot; of a stage: version
  std::vector<std::vector<int>> last_use_, kept_;  // of a stage's version: the last line that reads it, its stash
  std::vector<Numbers> slots_, stashes_;
  int asked_ = -1;  // the last line whose input was asked for ahead
  bool updated_ = false;
};
}  // namespace detail

/// The lines of one process. Throws ArgumentError for a table that is not sound (with its sentence), and for one whose
/// synchronous updates are not the last steps of a rank.
inline PipelineProgram pipeline_program(const Schedule& s, const PipelineProgramOptions& o) {
  if (const ScheduleReport r = play(s, TaskLengths{}, [](const TimedStep&) {}); !r.sound())
    throw ArgumentError(text("pipeline: rank {}, {} of stage {}, micro-batch {}: {}", r.rank, name_of(r.at.task), r.at.stage,
                             r.at.micro, sentence_of(r.fault)));
  return detail::PipelineProgramBuilder(s, o).build();
}

}  // namespace skein::inline SKEIN_ABI::plan
