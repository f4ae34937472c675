// SPDX-License-Identifier: Apache-2.0
// PipelineTrainStep: one training step through the stages of this process, in the order of a schedule's table: what a Trainer
// sees of it, in place of train::TrainStep. pipeline_local_stages.hpp has the stages, pipeline_run.hpp runs their lines.
#pragma once
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../nn/buffer_backup.hpp"
#include "../../nn/check_batch.hpp"
#include "../../nn/executor_options.hpp"
#include "../../nn/step_memory.hpp"
#include "../../optim/loss_scaler.hpp"
#include "../../optim/step_checks.hpp"
#include "pipeline_arrays.hpp"
#include "pipeline_run.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// The train step of a pipeline: what Trainer uses in place of TrainStep where the policy is a Pipeline.
template <class Model, class Loss, class Optimizer> class PipelineTrainStep {
  using Run = detail::PipelineRun<Model, Loss, Optimizer>;

 public:
  using Scalar = typename Model::Scalar;
  using Device = typename Model::device;
  using Sums = nn::LossSums;
  using PolicyState = PipelinePolicyState<Scalar, Device>;
  static_assert(
      on_host<Device> || !optim::has_stages<Optimizer>,
      "Pipeline: a stage on a GPU takes ClipNorm at the head of its chain and elementwise transforms: one that needs tensors "
      "(Lars), or a norm further on, runs on the host, or without a pipeline");
  static_assert(!Model::sizes.carries_state,
                "Pipeline: micro-batches do not go on where those before have ended: take a model without Stateful layers");
  static_assert(
      !optim::needs_curvature<Optimizer>,
      "Pipeline: Kfac needs the whole model on each rank: take DataParallel or another policy, or leave Kfac out of the chain");
  static_assert(
      !nn::is_timed<Loss>,
      "Pipeline: Timed is for steps that one rank makes whole: a stage's times are in the trace of its policy; take the "
      "loss without Timed");
  static constexpr long Width = Model::output_extents.count(), OutputPitch = sample_pitch(Model::output_extents);

  /// Initial weights are agreed here: all ranks make their train step at the same time.
  template <class Policy> PipelineTrainStep(Model& model, Loss loss, const Optimizer& optimizer, const Policy& policy)
      : loss_(std::move(loss)), asked_optimizer_(optimizer), run_(model, loss_, optimizer, policy.team()),
        arrays_(run_.local_stages), memory_(model.where()) {}

  /// Memory for batches of at most `options.capacity` samples of this pipeline.
  void reserve(ExecutorOptions options) {
    nn::check_reserve(options);
    if (options.threads <= 0) options.threads = threads();
    if (options.execution == Execution::depth_first)
      throw ArgumentError(
          "Pipeline: depth-first blocks cut a batch for the cache, micro-batches cut it for the ranks: leave .execution as it "
          "is");
    run_.reserve(options.capacity, options.threads, options.denormals);
  }
  bool reserved() const { return run_.reserved(); }
  /// Programs and primitives for batches of so many samples.
  void prepare(long batch) { run_.prepare(batch); }

  /// One step on this pipeline's samples of a batch. Returns the sums over all of them, on every rank. PipeDream makes an update
  /// for each micro-batch; the pipeline drains at the end of the batch. All ranks of the pipeline give the same batch.
  template <class Given> Sums step(const Given& given, const optim::StepOptions& options = {}) {
    const BatchView<Scalar>& batch = batch_view<Scalar, Cpu>(given);
    [[maybe_unused]] const auto here = memory_.enter();
    nn::check_reserved(reserved() ? this : nullptr);
    check_size(batch.count, batch.global_count);
    nn::check_given<Model>(loss_, given, batch, true);
    optim::check_step(options);
    if (options.finite)
      throw ArgumentError("Pipeline: .finite leaves out the update of a whole model: the stages update one by one, leave it out");
    const long size = run_.micro_size(batch.global_count);
    const plan::PipelineProgram& program = program_of(batch.count, batch.global_count, size);
    const bool together = program.synchronous;
    const double clip = optim::clip_norm_of(asked_optimizer_, options.clip_norm);
    check_alone(together, options.accumulate || !options.update, clip > 0);
    optim::join_accumulation(options.accumulate, accumulated_);
    if (accumulated_ == 0) expected_weight_ = Run::expected_batch_weight(size), carried_ = {}, keep_buffers();
    const long before = std::exchange(accumulated_, 0);  // of a step that throws nothing waits
    const detail::PipelineCall call = call_of(options, size, clip, before);
    run(program, batch, call);
    for (const Sums& s : together ? run_.micro_sums() : run_.micro_sums_of_all())
      carried_ += s;  // in the order of the micro-batches
    Sums sums = call.update && together ? run_.updates.sums_of_all() : carried_;
    accumulated_ = call.update ? 0 : before + 1;
    if (call.update) {
      const bool counts = !call.look || scaler_.update(run_.updates.overflowed());
      step_ += !counts ? 0 : together ? 1 : program.micros;
      if (!counts && !std::isfinite(sums.loss)) give_back_buffers();
      if (counts) totals_ += sums;
    }
    return sums;
  }
  /// An accumulation that has begun gets no further batch: on the host, running statistics are what they were before it.
  void give_up_accumulation() {
    const bool begun = std::exchange(accumulated_, 0) > 0;
    if constexpr (on_host<Device>)
      if (begun) give_back_buffers();
  }
  /// Forward and loss, in evaluation phase, micro-batches one behind the other through the stages. The sums are the last stage's;
  /// with neither labels nor targets, every rank has the outputs.
  template <class Given> Sums evaluate(const Given& given, bool accumulate = false) {
    const BatchView<Scalar>& batch = batch_view<Scalar, Cpu>(given);
    [[maybe_unused]] const auto here = memory_.enter();
    nn::check_reserved(reserved() ? this : nullptr);
    check_size(batch.count, batch.count * team().options.replicas);
    nn::check_given<Model>(loss_, given, batch, false);
    detail::PipelineCall call;
    call.size = run_.micro_size(batch.count * team().options.replicas);
    call.phase = nn::Phase::evaluation;
    call.expected_weight = expected_weight_;
    run_.run(run_.program(Run::micros(batch.count, call.size), true), batch, call);
    Sums sums;
    for (const Sums& s : run_.micro_sums()) sums += s;
    evaluated_ = accumulate ? (evaluated_ += sums) : sums;
    if (!batch.labels && !batch.targets && team().processes > 1) run_.broadcast_outputs(batch.count);
    return evaluated_;
  }

  /// An update is made whatever the loss is.
  static constexpr bool left_out() { return false; }
  nn::LossSums totals() const { return totals_; }
  void set_totals(const nn::LossSums& s) { totals_ = s; }
  Model& model() const { return *run_.local_stages.model; }
  PolicyState& policy_state() { return run_.local_stages.policy_state; }
  const PolicyState& policy_state() const { return run_.local_stages.policy_state; }
  const Loss& loss() const { return loss_; }
  std::int64_t steps() const { return step_; }
  void set_steps(std::int64_t n) { step_ = n; }
  /// How the loss is scaled: dynamically for fp16, not at all for bf16, as they come; all ranks alike. The scale is of the mean
  /// over a micro-batch, as in an accumulation over batches of its size: one for the mean over the whole batch, divided by the
  /// number of micro-batches of all pipelines, leaves the gradients in the same range. Throws ArgumentError for values that
  /// cannot scale.
  void set_loss_scaling(const optim::LossScaling& scaling) requires Model::scales_loss {
    scaling.check();
    if (scaling == scaler_.options()) return;
    scaler_ = scaler_.with(scaling);
    accumulated_ = 0;  // gradients that wait for their update have the scale before: they are given up
  }
  /// The scale as it stands.
  optim::LossScaler& loss_scaler() requires Model::scales_loss { return scaler_; }
  /// The norm of the gradients of all stages in the last step that was clipped; 0 before.
  double gradient_norm() const { return run_.updates.norm(); }
  optim::BoundOptimizer<Optimizer, Scalar, Device>& optimizer() { return run_.local_stages.optimizer(); }
  int threads() const { return Workers::default_count(policy_state().local_ranks(), policy_state().threads_of_one_process()); }

  long capacity() const { return run_.capacity(); }
  /// The outputs for the samples of the last evaluation: see evaluate().
  const Scalar* outputs() const { return run_.outputs(); }
  nn::StepMemory<Device>& step_memory() { return memory_; }
  /// Nothing: all that a pipeline's steps could be, they are.
  static constexpr std::string_view note() { return {}; }
  /// The stages' parameters, buffers and optimizer's arrays, as this process has them and as files have them.
  detail::PipelineArrays<typename Run::LocalStages>& arrays() { return arrays_; }

  /// Optimizer steps that a batch of so many samples makes: PipeDream's stages, and those of a table that is not synchronous,
  /// make one a micro-batch.
  std::int64_t updates_of(long global_count) const {
    const PipelineOptions& o = team().options;
    if (o.schedule != PipelineSchedule::pipedream && !o.table) return 1;
    const int micros = Run::micros((global_count + o.replicas - 1) / o.replicas, run_.micro_size(global_count));
    return o.table && o.table(team().ranks, Model::stages, micros).synchronous ? 1 : micros;
  }
  /// Bytes of what grows with the micro-batches in flight, and micro-batches that this process has memory for.
  long activation_bytes() const { return run_.local_stages.activation_bytes(); }
  int slots() const { return run_.local_stages.slots(); }
  /// The lines that a batch of so many micro-batches runs.
  const plan::PipelineProgram& program(int micros) {
    nn::check_reserved(reserved() ? this : nullptr);
    return run_.program(micros, false, false);
  }

 private:
  void check_size(long count, long global_count) const {
    if (count > capacity() || run_.micro_size(global_count) > run_.micro_size(capacity() * team().options.replicas))
      throw ArgumentError(text(
          "Pipeline: the batch has {} samples of this pipeline and {} of all, and .capacity is {}: the most samples of one call",
          count, global_count, capacity()));
  }
  detail::PipelineCall call_of(const optim::StepOptions& options, long size, double clip, long calls_before) const {
    detail::PipelineCall call;
    call.size = size;
    call.phase = nn::Phase::training;
    call.key = optim::key_of_step(options, model().seed(), step_ + 1, calls_before);
    call.accumulate = options.accumulate, call.update = options.update;
    call.look = Model::scales_loss && scaler_.active();
    call.loss_scale = scaler_.scale();
    call.lr = static_cast<double>(asked_optimizer_.lr) * options.lr_factor;
    call.clip = clip;
    call.expected_weight = expected_weight_;
    call.step = step_;
    call.carried = carried_;
    return call;
  }
  /// PipeDream's stages update one by one, in no step of all of them.
  void check_alone(bool together, bool accumulates, bool clips) const {
    if (together) return;
    if (accumulates || clips || optim::has_stages<Optimizer>)
      throw ArgumentError(
          "Pipeline: PipeDream updates after each micro-batch: no accumulation over batches, no norm of all gradients to clip "
          "by, "
          "and no transform that needs tensors (Lars)");
    if (scaler_.active())
      throw ArgumentError(
          "Pipeline: PipeDream's stages update one by one and cannot skip a step together where a gradient "
          "overflows: take precision::bf16, .loss_scaling = none, or another schedule");
  }
  PipelineTeam& team() const { return *run_.local_stages.team; }
  void run(const plan::PipelineProgram& program, const BatchView<Scalar>& batch, const detail::PipelineCall& call) {
    try {
      run_.run(program, batch, call);
    } catch (...) {
      give_back_buffers();
      throw;
    }
  }
  void keep_buffers() {
    buffer_backups_.resize(run_.local_stages.stages.size());
    auto backup = buffer_backups_.begin();
    for (auto& local : run_.local_stages.stages) {
      backup->reserve(model().buffers(local.stage), model().where());
      backup++->keep(model().buffers(local.stage));
    }
  }
  void give_back_buffers() {
    auto backup = buffer_backups_.begin();
    for (auto& local : run_.local_stages.stages) backup++->give_back(model().buffers(local.stage));
  }
  const plan::PipelineProgram& program_of(long count, long global_count, long size) {
    const plan::PipelineProgram& found = run_.program(Run::micros(count, size), false);
    team().compare_pipelines(found.synchronous);
    if (!team().replica_link || found.synchronous) return found;
    const int replicas = team().options.replicas;  // PipeDream's pipelines meet after each micro-batch: all have as many
    const long most = (global_count + replicas - 1) / replicas;
    if (count > most)
      throw ArgumentError(text("Pipeline: PipeDream over several pipelines wants even parts of a batch: one has {} of {} samples",
                               count, global_count));
    return run_.program(Run::micros(most, size), false);
  }

  Loss loss_;
  Optimizer asked_optimizer_;
  Run run_;
  detail::PipelineArrays<typename Run::LocalStages> arrays_;
  nn::StepMemory<Device> memory_;
  optim::LossScaler scaler_{optim::usual_loss_scaling<typename Model::Activation>()};
  std::vector<nn::BufferBackup<Scalar, Device, Model::scales_loss>> buffer_backups_;  // of each stage
  Sums carried_{}, evaluated_{}, totals_{};  // carried_: of the batches that are accumulated
  long accumulated_ = 0;
  double expected_weight_ = 1;
  std::int64_t step_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::parallel
