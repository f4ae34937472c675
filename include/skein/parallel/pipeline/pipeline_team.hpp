// SPDX-License-Identifier: Apache-2.0
// Where a process stands in a pipeline (which ranks of the schedule, which replica), what a user sets for one, and the policy
// state that a training holds: hooks of the Trainer, the clock of waiting, and the trace of the last step.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../../core/error.hpp"
#include "../../device/host_side.hpp"
#include "../../optim/groups.hpp"
#include "../../plan/schedule_check.hpp"
#include "pipeline_link.hpp"
#include "../policy.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// Which table of plan/pipeline_schedule.hpp.
enum class PipelineSchedule { unpipelined, gpipe, one_f_one_b, interleaved, zero_bubble, pipedream };

/// Two parameters of the same extents, by their names in the whole network, that are one: they begin as the first, and each step
/// moves both by the sum of their gradients, which counts once in a norm.
struct TiedParameters {
  std::string first, second;
};

namespace detail {
/// Where both sides of a tied pair are: the stage of each, and the offset there.
template <class Scalar> struct TiedPair {
  int stage[2] = {-1, -1};
  long offset[2] = {0, 0}, stored = 0;
  Arena<Scalar> other;  ///< the values of the side that another process has
};
/// What the rules say of one parameter.
inline optim::ParameterGroupRange rule_of(const optim::Groups& groups, std::string_view name, const plan::Entry& e) {
  optim::ParameterGroupRange rule = optim::resolve(groups, {{name, e.offset, e.offset + e.stored, e.decay}}).front();
  rule.begin = rule.end = 0;
  return rule;
}
/// Throws ArgumentError unless the rules treat both alike.
inline void check_rules_of_tied(const TiedParameters& t, bool alike) {
  if (!alike)
    throw ArgumentError("Pipeline: .tied: the rules of .groups give '" + t.first + "' and '" + t.second +
                        "', which are one parameter, different rates or decays, or freeze one of them: name both in a rule");
}
}  // namespace detail

/// A pipeline's schedule, its micro-batches, and how often it is there.
struct PipelineOptions {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  int micro_batches = 4;      ///< a batch is cut into so many, of equal size but for the last
  long micro_batch = 0;       ///< or: samples of one; then a batch has as many as it takes
  int replicas = 1;           ///< pipelines beside each other, each with a part of the batch (pipeline x data)
  bool vertical_sync = true;  ///< PipeDream: a micro-batch reads the same version of the weights in every stage
  int devices = 0;            ///< world of one rank: the schedule's ranks, all driven by this thread; 0: one a stage
  std::vector<TiedParameters> tied{};
  /// Over SimComm, or Delayed: each task of a stage takes so long there.
  plan::StageLengths lengths{};
  /// A table of one's own instead of .schedule; the same on all ranks, which compare it where a batch has so many micro-batches
  /// for the first time.
  std::function<plan::Schedule(int ranks, int stages, int micro_batches)> table{};
};

/// A step of the table as it ran: seconds of the machine's steady clock, or of a simulated one.
struct PipelineEvent {
  plan::Step step{};
  double begin = 0, end = 0;
};

/// The table of the options. Throws ArgumentError where ranks and stages do not go together.
inline plan::Schedule pipeline_schedule(const PipelineOptions& o, int ranks, int stages, int micros) {
  if (o.table) return o.table(ranks, stages, micros);
  if (o.schedule == PipelineSchedule::interleaved) return plan::interleaved(ranks, stages / ranks, micros);
  switch (o.schedule) {
    case PipelineSchedule::unpipelined:
      return plan::unpipelined(ranks, micros);
    case PipelineSchedule::gpipe:
      return plan::gpipe(ranks, micros);
    case PipelineSchedule::zero_bubble:
      return plan::zero_bubble(ranks, micros);
    case PipelineSchedule::pipedream:
      return plan::pipedream(ranks, micros);
    default:
      return plan::one_f_one_b(ranks, micros);
  }
}

/// The communicators of a pipeline and this process's place. All ranks of the world make theirs at the same time.
class PipelineTeam {
 public:
  PipelineTeam(std::shared_ptr<PipelineLink> everyone, const PipelineOptions& o, int stage_count)
      : options(o), stages(stage_count), world(std::move(everyone)) {
    const int size = world->size();
    if (o.micro_batches < 1 || o.micro_batch < 0)
      throw ArgumentError("Pipeline: .micro_batches is at least 1, .micro_batch (samples of one) not negative");
    if (o.replicas < 1 || size % o.replicas != 0)
      throw ArgumentError("Pipeline: " + std::to_string(size) +
                          " ranks cannot be divided into .replicas = " + std::to_string(o.replicas) + " pipelines");
    if (!o.lengths.stages.empty() && static_cast<int>(o.lengths.stages.size()) != stage_count)
      throw ArgumentError("Pipeline: .lengths has " + std::to_string(o.lengths.stages.size()) + " stages of " +
                          std::to_string(stage_count));
    processes = size / o.replicas;
    ranks = processes > 1 ? processes : o.devices > 0 ? o.devices : stages;
    if (stages % ranks != 0 || (ranks != stages && o.schedule != PipelineSchedule::interleaved && !o.table))
      throw ArgumentError("Pipeline: " + std::to_string(stages) + " stages over " + std::to_string(ranks) +
                          " ranks: give as many ranks as stages (times .replicas)" +
                          (stages % ranks == 0 ? ", or PipelineSchedule::interleaved" : ""));
    replica = world->rank() / processes;
    process = world->rank() % processes;
    first_rank = processes > 1 ? process : 0;
    last_rank = processes > 1 ? process + 1 : ranks;
    if (o.replicas > 1) {
      line = world->split(replica, process);
      data = world->split(process, replica);
    } else {
      line = world;
    }
  }
  bool holds(int stage) const { return stage % ranks >= first_rank && stage % ranks < last_rank; }
  /// The process of this pipeline that has a stage.
  int process_of(int stage) const { return processes > 1 ? stage % ranks : 0; }
  /// The processes of this pipeline need not compare their tables for so many micro-batches (any more).
  bool is_compared(int micros) const {
    for (const int n : compared_)
      if (n == micros) return true;
    return !options.table || processes == 1;
  }
  /// The table of a batch with so many micro-batches. `together`: all processes of the pipeline ask for it, and one of .table is
  /// compared, once: with different ones they would wait for each other, or update at different times.
  plan::Schedule schedule(int micros, bool together) {
    plan::Schedule s = pipeline_schedule(options, ranks, stages, micros);
    if (!together || is_compared(micros)) return s;
    NamedValues values;
    values.add("the number of micro-batches of a batch", micros).of(".table");
    values.add(".synchronous", s.synchronous).add(".ranks", s.ranks).add(".stages", s.stages).add(".micros", s.micros);
    for (std::size_t r = 0; r < s.order.size(); ++r) {
      std::vector<int> steps;
      for (const plan::Step& x : s.order[r])
        for (const int n : {static_cast<int>(x.task), x.stage, x.micro}) steps.push_back(n);
      values.add_hash("the order of rank " + std::to_string(r), steps.data(), steps.size() * sizeof(int));
    }
    line->assert_same("the tables of the pipeline", values);
    compared_.push_back(micros);
    return s;
  }

  PipelineOptions options;
  int stages;
  std::shared_ptr<PipelineLink> world, line, data{};       // all; this pipeline; the same stages of all pipelines
  int processes = 1, process = 0, ranks = 1, replica = 0;  // ranks: of the schedule
  int first_rank = 0, last_rank = 1;

 private:
  std::vector<int> compared_;  // numbers of micro-batches
};

/// What a Trainer sees of a pipeline.
template <class Scalar, class Device = Cpu> class PipelinePolicyState : public PolicyState {
 public:
  static constexpr Capabilities capabilities{Capability::shares_batches};
  explicit PipelinePolicyState(std::shared_ptr<PipelineTeam> team) : team_(std::move(team)) {}

  int rank() const { return team_->world->rank(); }
  int ranks() const { return team_->world->size(); }
  int local_ranks() const { return team_->world->node_size(); }
  bool threads_of_one_process() const { return team_->world->one_process(); }
  /// A batch is divided among the pipelines, not among their ranks: which part, of how many.
  int shard() const { return team_->replica; }
  int shards() const { return team_->options.replicas; }
  /// Outputs and losses are the last stage's.
  bool scores() const { return team_->holds(team_->stages - 1); }
  /// Of the same stages of all pipelines, which add up their gradients in each update.
  SameWeights same_weights() const { return shards() > 1 ? SameWeights::after_step : SameWeights::never; }
  /// Ranks make each step together, and a small sum between steps puts forward no clock of theirs.
  bool in_step() const { return !team_->world->simulated_time(); }

  void average_buffers() {
    if (!team_->data) return;
    for (DeviceSpan<Scalar, Device> b : buffers) {
      if (b.size == 0) continue;
      HostSide<Scalar, Device> host(b, where);
      host.read();
      team_->data->sum(DeviceSpan<Scalar>(host.data(), b.size));
      for (std::size_t i = 0; i < b.size; ++i) host.data()[i] /= static_cast<Scalar>(team_->options.replicas);
      host.write();
    }
  }
  void reduce(std::span<double> values) {
    if (ranks() > 1 && !values.empty()) team_->world->sum(DeviceSpan<double>(values.data(), values.size()));
  }
  void barrier() {
    if (ranks() > 1) team_->world->barrier();
  }
  std::vector<std::uint64_t> numbers_of_all(std::span<const std::uint64_t> own) { return team_->world->numbers_of_all(own); }
  std::vector<std::string> texts_of_all(const std::string& own) { return team_->world->texts_of_all(own); }
  double exposed_seconds() const { return waited; }

  /// What the last step did, in its order.
  std::span<const PipelineEvent> trace() const { return events; }
  const PipelineTeam& team() const { return *team_; }

  // The train step's.
  std::vector<DeviceSpan<Scalar, Device>> buffers{};
  Device where{};
  std::vector<PipelineEvent> events{};
  double waited = 0;

 private:
  std::shared_ptr<PipelineTeam> team_;
};

}  // namespace skein::inline SKEIN_ABI::parallel
