// SPDX-License-Identifier: Apache-2.0
// The policy state that a training holds of a pipeline: hooks of the Trainer, the clock of waiting, and the trace of the last
// step.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../../device/host_side.hpp"
#include "../policy.hpp"
#include "pipeline_team.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// A step of the table as it ran: seconds of the machine's steady clock, or of a simulated one.
struct PipelineEvent {
  plan::Step step{};
  double begin = 0, end = 0;
};

/// What a Trainer sees of a pipeline.
template <class Scalar, class Device = Cpu> class PipelinePolicyState : public PolicyState {
 public:
  static constexpr Capabilities capabilities{Capability::shares_batches, Capability::splits_model};
  explicit PipelinePolicyState(std::shared_ptr<PipelineTeam> team) : team_(std::move(team)) {}

  int rank() const { return team_->world->rank(); }
  int ranks() const { return team_->world->size(); }
  int local_ranks() const { return team_->world->node_size(); }
  bool threads_of_one_process() const { return team_->world->one_process(); }
  /// A batch is divided among the pipelines, not among their ranks: which part, of how many.
  int batch_part() const { return team_->replica; }
  int batch_parts() const { return team_->options.replicas; }
  /// Outputs and losses are the last stage's.
  bool scores() const { return team_->holds(team_->stages - 1); }
  /// When the replicas of a stage have the same weights: all pipelines add up its gradients in each update.
  SameWeights same_weights() const { return batch_parts() > 1 ? SameWeights::after_step : SameWeights::never; }
  /// Ranks make each step together, and a small sum between steps puts forward no clock of theirs.
  bool in_step() const { return !team_->world->simulated_time(); }

  /// After a file was loaded: pairs of tied parameters are alike again.
  void start() {
    if (tie) tie();
  }
  void average_buffers() {
    for (HostSide<Scalar, Device>& b : buffers) {
      if (b.size() == 0) continue;
      b.read();
      team_->replica_link->sum(DeviceSpan<Scalar>(b.data(), b.size()));
      for (std::size_t i = 0; i < b.size(); ++i) b.data()[i] /= static_cast<Scalar>(team_->options.replicas);
      b.write();
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
  comm::RankNames rank_names() const { return team_->world->rank_names(); }
  double exposed_seconds() const { return waited; }

  /// What the last step did, in its order.
  std::span<const PipelineEvent> trace() const { return events; }
  const PipelineTeam& team() const { return *team_; }

  // The train step's.
  std::vector<HostSide<Scalar, Device>> buffers{};  // of each stage, where pipelines are beside each other
  std::vector<PipelineEvent> events{};
  double waited = 0;
  std::function<void()> tie{};

 private:
  std::shared_ptr<PipelineTeam> team_;
};

}  // namespace skein::inline SKEIN_ABI::parallel
