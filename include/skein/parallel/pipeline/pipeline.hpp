// SPDX-License-Identifier: Apache-2.0
// Pipeline<Stages...>: the network is cut into stages, each on a rank (or several on one); the batch into micro-batches that
// follow each other through them. In which order is data: a table of plan/pipeline_schedule.hpp, which the train step interprets.
// GPipe: Huang et al., NeurIPS 2019.
#pragma once
#include "pipeline_train_step.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// Pipeline parallelism: the network is cut into stages, a batch into micro-batches; a rank runs one or several stages.
template <class... Ss> class Pipeline : public PolicyBase {
  static_assert(sizeof...(Ss) > 0, "Pipeline<Stages...>: give at least one stage, a network such as nn::Sequential<...>");

 public:
  using stages = List<Ss...>;
  using network = whole_network<Ss...>;
  static constexpr int stage_count = sizeof...(Ss);

  /// The communicator must outlive the training. Rank s mod (number of ranks) runs stage s (with .replicas: in each pipeline,
  /// whose ranks are consecutive). With one rank, this thread runs all stages. All ranks construct their pipelines at the same
  /// time. Throws ArgumentError if ranks, stages and schedule do not fit together.
  template <class Comm> explicit Pipeline(Comm& world, const PipelineOptions& options = {})
      : team_(std::make_shared<PipelineTeam>(pipeline_link(world), options, stage_count)) {}

  /// Over a link that pipeline_link(world) has made: for what is compiled once for several communicators.
  explicit Pipeline(std::shared_ptr<PipelineLink> link, const PipelineOptions& options = {})
      : team_(std::make_shared<PipelineTeam>(std::move(link), options, stage_count)) {}

  /// Whether this process has the stage.
  bool holds(int stage) const { return team_->holds(stage); }
  const std::shared_ptr<PipelineTeam>& team() const { return team_; }
  /// The schedule of a batch with so many micro-batches.
  plan::Schedule schedule(int micro_batches) const {
    return pipeline_schedule(team_->options, team_->ranks, stage_count, micro_batches);
  }

  /// The model of this process's stages. The initial weights are those of a Model of the whole network with this seed.
  template <class Input, class Device = Cpu, class Precision = float> auto model(Seed seed = {}) const {
    return StagedModel<Pipeline, Input, Device, Precision>(*this, seed);
  }

  template <class R> PipelinePolicyState<typename R::Scalar, typename R::Device> bind(const R&) const {
    return PipelinePolicyState<typename R::Scalar, typename R::Device>(team_);
  }
  static constexpr bool brings_train_step = true;
  template <class Model, class Loss, class Optimizer> using TrainStep = PipelineTrainStep<Model, Loss, Optimizer>;

 private:
  std::shared_ptr<PipelineTeam> team_;
};

/// Stages given as one type: Pipeline<balanced_stages<Network, Input, 4>>.
template <class... Ss> class Pipeline<Stages<Ss...>> : public Pipeline<Ss...> {
 public:
  template <class Comm> explicit Pipeline(Comm& world, const PipelineOptions& options = {}) : Pipeline<Ss...>(world, options) {}
  explicit Pipeline(std::shared_ptr<PipelineLink> link, const PipelineOptions& options = {})
      : Pipeline<Ss...>(std::move(link), options) {}
};

}  // namespace skein::inline SKEIN_ABI::parallel
