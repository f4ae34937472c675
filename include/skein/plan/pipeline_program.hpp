// SPDX-License-Identifier: Apache-2.0
// What one process does of a pipeline schedule, line by line: its ranks' steps in their order, and for each the slot that holds
// the micro-batch, what comes from and goes to another process, which input is asked for ahead, and which version of the weights
// is read or saved. A pure function of the table; an interpreter executes the lines and decides nothing.
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "schedule_check.hpp"

namespace skein::inline SKEIN_ABI::plan {

/// One line of a process's program: a task of a schedule, and the messages and memory that belong to it.
struct PipelineLine {
  Step step{};
  int slot = -1;                       ///< of the micro-batch in its stage
  bool receives = false;               ///< what it needs comes from another process
  bool sends = false;                  ///< what it makes goes to another process
  bool asks = false;                   ///< that was not asked for yet
  int ahead = -1;                      ///< the later line whose input is asked for before this one runs
  int to = -1;                         ///< the slot of the neighbouring stage of this process that takes what it makes
  std::optional<int> reads_version{};  ///< forward: the saved weights that it reads; none: the newest
  std::optional<int> saves_version{};  ///< update: the weights before it are saved as that
};

/// What one process of a pipeline does in a step, line by line, and what it has memory for.
struct PipelineProgram {
  std::vector<PipelineLine> lines{};
  std::vector<int> slots{}, versions{};  ///< of each stage: micro-batches in flight, saved versions of the weights
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
  int take();
  void give(int i) { used_[static_cast<std::size_t>(i)] = false; }
  int most() const { return static_cast<int>(used_.size()); }

 private:
  std::vector<bool> used_;
};

std::vector<Step> steps_of(const Schedule& s, const PipelineProgramOptions& o);
/// Throws ArgumentError where a stage of a sound schedule that is not synchronous has a gradient, or a half of one, before its
/// update by that of another micro-batch: a stage has memory for one. All ranks' orders are looked at, so that all ranks refuse.
void check_waiting_gradients(const Schedule& s);
/// Throws ArgumentError where a stage of a sound synchronous schedule has both backward and its halves: gradients add up within
/// each of them alone.
void check_mixed_backwards(const Schedule& s);

/// Makes the lines of a process, in the order of its steps. What is remembered of a (stage, micro-batch) lies in one vector.
class PipelineProgramBuilder {
 public:
  PipelineProgramBuilder(const Schedule& s, const PipelineProgramOptions& o);
  PipelineProgram build();

 private:
  static std::size_t count(int n) { return static_cast<std::size_t>(n); }
  bool own(int stage) const { return s_.rank_of(stage) >= o_.first_rank && s_.rank_of(stage) < o_.last_rank; }
  bool comes(const Step& x) const { return x.task == Task::forward && x.stage > 0 && !own(x.stage - 1); }
  int& slot(int stage, int micro) { return slot_[count(stage * s_.micros + micro)]; }
  int& wanted(const Step& x) { return wanted_[count(x.stage * s_.micros + x.micro)]; }
  int& last_use_of(int stage, int version) { return last_use_[count(stage)][count(version)]; }
  int& saved(int stage, int version) { return saved_[count(stage)][count(version)]; }
  int take(int stage, int micro) { return slot(stage, micro) = slots_[count(stage)].take(); }

  /// Which version each forward reads: the updates before it, of the first stage or of its own.
  void find_versions();

  PipelineLine line(std::size_t i);
  /// One input is asked for ahead of its turn, so that its sender need not wait.
  void ask(PipelineLine& line, std::size_t i);
  void forward(PipelineLine& line);
  void backward(PipelineLine& line);
  /// The weights before it are saved where a later line reads them.
  void update(PipelineLine& line, std::size_t i);
  void use(PipelineLine& line, std::size_t i);

  const Schedule& s_;
  PipelineProgramOptions o_;
  std::vector<Step> order_;
  PipelineProgram p_;
  std::vector<int> wanted_, slot_, version_;        // of a (stage, micro-batch): version to be read, slot; of a stage: version
  std::vector<std::vector<int>> last_use_, saved_;  // of a stage's version: the last line that reads it, as what it is saved
  std::vector<Numbers> slots_, saves_;              // of each stage
  int asked_ = -1;                                  // the last line whose input was asked for ahead
  bool updated_ = false;
};
}  // namespace detail

/// The lines of one process. Throws ArgumentError for a table that is not sound (with its sentence), for a synchronous one whose
/// updates are not the last steps of a rank, or whose stage has both backward and its halves, and for one that is not synchronous
/// and whose stage goes back through a micro-batch before its update by another.
PipelineProgram pipeline_program(const Schedule& s, const PipelineProgramOptions& o);

}  // namespace skein::inline SKEIN_ABI::plan

#if !SKEIN_COMPILED
#include "pipeline_program.ipp"
#endif
