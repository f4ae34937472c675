// SPDX-License-Identifier: Apache-2.0
// TrainStep: everything that one training step needs, bound together: model, loss, optimizer with its state, a policy's state
// and the executor. A step is a list of stages (step/), which the workers run in order in one parallel region. Trainer::fit is a
// loop around step(); a loop written by hand calls the same and is as fast.
#pragma once
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "../comm/public_call.hpp"
#include "../optim/step_options.hpp"
#include "model_in_fit.hpp"
#include "step/captured_step.hpp"
#include "step/check_step.hpp"
#include "step/check_step_batch.hpp"
#include "step/device_update.hpp"
#include "step/exchange_gradients.hpp"
#include "step/forward_backward.hpp"
#include "step/loss_scaling.hpp"
#include "step/run_stages.hpp"
#include "step/serving.hpp"
#include "step/step_arrays.hpp"
#include "step/step_launch.hpp"
#include "step/transform.hpp"
#include "step/update.hpp"
#include "step/virtual_shards.hpp"

namespace skein::inline SKEIN_ABI::train {

/// Forward, backward, exchange and update of a batch by the workers of a rank, under a policy.
template <class Model, class Loss, class Optimizer, class Policy = parallel::SingleProcess> class TrainStep {
  static_assert((optim::assert_optimizer<Optimizer>(), true));

 public:
  using Scalar = typename Model::Scalar;
  using Device = typename Model::device;
  static constexpr long Width = Model::output_extents.count(), OutputPitch = sample_pitch(Model::output_extents);
  static constexpr long labels_each = nn::labels_each(Model::output_extents);  ///< where the loss takes labels
  using Replica = parallel::Replica<Scalar, Device>;
  using PolicyState = decltype(std::declval<const Policy&>().bind(std::declval<const Replica&>()));
  /// nn::LossSums, or (on a device of its own) what becomes those when somebody asks, who waits then.
  using Sums = typename StepDevice<Scalar, Device>::Sums;
  using Parts = StepParts<Model, Loss, Optimizer, PolicyState>;
  using State = StepState<Parts>;
  using Executor = typename Parts::Executor;

  static_assert((assert_step<Model, Optimizer, PolicyState>(), true));

  /// Initial weights are agreed here: all ranks make their TrainStep at the same time.
  TrainStep(Model& model, Loss loss, const Optimizer& optimizer, const Policy& policy)
      : parts_(model, std::move(loss), optimizer, policy) {
    const comm::InPublicCall here(comm::PublicCall::trainer);
    const ModelInFit alone(&model);
    const auto lease = model.modify();  // weights may come from another rank
    parts_.policy_state.start();
  }

  /// Makes memory for calls of at most `options.capacity` samples of this rank, unless it is there. Ranks that exchange call it
  /// at the same step: captured steps are void then, and the next one of each kind is launched kernel by kernel, so that the
  /// calling thread has made all that a step takes before it captures one.
  void reserve(ExecutorOptions options) {
    nn::check_reserve(options);
    if (options.threads == 0) options.threads = threads();
    SumShards::ask(parts_, options);
    options.first_trained = parts_.optimizer.first_trained();
    auto& executor = parts_.executor;
    parts_.device.forget();  // of all ranks, whether or not this one has room: the thread may be another than launched steps
    if (executor && executor->capacity() >= options.capacity && options.execution == asked_.execution &&
        options.block == asked_.block && options.threads == asked_.threads && options.denormals == asked_.denormals)
      return;
    executor = nullptr, accumulated_ = 0;  // its gradients are gone: the next step is a new one
    auto made = std::make_unique<Executor>(model(), loss(), options);
    const long n = options.capacity;
    constexpr bool tokens = is_tokens<typename Model::input>;
    parts_.device.reserve(
        {.x = tokens ? 0 : n * Executor::input_pitch,
         .tokens = tokens ? n * Model::input::count : 0,
         .labels = Loss::target == nn::TargetKind::label ? n * labels_each : 0,
         .targets = Loss::target == nn::TargetKind::vector ? n * nn::batch_rows<Model, Loss>().target_pitch : 0});
    parts_.buffers.reserve(model().buffers(), model().where());
    parts_.update_memory.reserve(*made, Parts::stored, SumShards::used<Parts>);
    parts_.curvature.attach(*made);
    SumShards::attach(parts_, *made);
    executor = std::move(made), asked_ = options;  // now that all is there: else the next call would take a part for all
  }

  /// One step on this rank's samples of a batch: forward, loss, backward, the policy's exchange, the optimizer. Returns the sums
  /// of the step: over all ranks where it exchanged gradients, else (in a call without an update, and under a policy with
  /// local_sums) of this rank alone. Allocates nothing, and waits for no device (but where the loss is scaled: whether the step
  /// before counts). A step whose gradients overflow leaves parameters, state and steps() as they were. Batch: see Executor; in
  /// the host's memory, or the device's.
  template <class Batch> Sums step(const Batch& given, const optim::StepOptions& options = {}) {
    check_step_batch(parts_, given, true);
    optim::check_step(options);
    if constexpr (SumShards::used<Parts>) SumShards::check(parts_, given);
    [[maybe_unused]] const auto here = parts_.executor->step_memory().enter();
    optim::join_accumulation(options.accumulate, accumulated_);
    const auto& batch = parts_.device.upload(given, batch_use(parts_));
    parts_.lap(StepPart::load);
    update_scale();
    if (accumulated_ == 0) {  // of an accumulation, its first batch
      if (parts_.policy_state.before_step(step_ + 1)) model().weights().changed();
      parts_.buffers.keep(model().buffers());
    }
    parts_.lap(StepPart::synchronization);
    PolicySink<Parts> policy(parts_);
    State step = begin(batch, options, policy);
    [[maybe_unused]] const long replays = parts_.device.replays();
    launch(step, options);
    parts_.device.finish();
    if (step.exchange && parts_.device.replays() != replays) parts_.policy_state.replayed();
    accumulated_ = options.update ? 0 : accumulated_ + 1;
    sums_ = step.sums;
    parts_.lap(StepPart::update);
    if (!options.update) return result(false);
    finish(step);
    parts_.lap(StepPart::synchronization);
    return result(step.exchange);
  }

  /// An accumulation that has begun gets no further batch: on the host, running statistics are what they were before it.
  void give_up_accumulation() {
    if (std::exchange(accumulated_, 0) > 0) parts_.buffers.give_back(model().buffers());
  }
  /// Forward and loss of this rank's samples, in evaluation phase. Sums are of this rank alone: of this batch, or with
  /// `accumulate` of those before it too.
  template <class Batch> Sums evaluate(const Batch& given, bool accumulate = false) {
    check_step_batch(parts_, given, false);
    Executor& run = executor();
    [[maybe_unused]] const auto here = run.step_memory().enter();
    const auto& batch = parts_.device.upload(given, BatchUse::evaluation);
    run.begin(batch, {}, true);
    run.run([&](Worker& w) { run.evaluate(w, batch, accumulate); });
    parts_.device.finish();
    if constexpr (on_host<Device>) sums_ = run.sums();
    return result(false);
  }

  /// On a rank that serves, in place of steps: returns when those that train have finished. factor(step) is the schedule's, from
  /// 0; heard(): a signal that this rank has got, or 0, of which the others hear.
  template <class Factor>
  void serve(const Factor& factor, double max_norm = 0, const std::function<int()>& heard = nullptr) requires on_host<Device> {
    ServerStep<Parts, Factor>(parts_, factor, max_norm, heard).run();
  }

  /// Sums of all updates since set_totals(): over all ranks, or this rank's alone, as those that step() returns. Waits for a
  /// device that has them.
  nn::LossSums totals() const {
    const nn::LossSums sums = parts_.device.totals();
    parts_.policy_state.check();
    return sums;
  }
  void set_totals(const nn::LossSums& sums) { parts_.device.set_totals(sums); }
  /// Why steps are not what they could be, in a line, or "".
  std::string_view note() const { return parts_.device.note(); }
  /// Optimizer steps that a batch makes.
  static constexpr std::int64_t updates_of(long) { return 1; }
  /// The part that is the device's: how the step is launched.
  const StepDevice<Scalar, Device>& device() const { return parts_.device; }

  /// Threads that a rank gets by default: the cores it may use, shared with the other ranks of this machine that use the same.
  int threads() const {
    return Workers::default_count(parts_.policy_state.local_ranks(), parts_.policy_state.threads_of_one_process());
  }

  Model& model() const { return *parts_.model; }
  /// After reserve().
  Executor& executor() { return *parts_.executor; }
  bool reserved() const { return parts_.executor != nullptr; }
  long capacity() const { return reserved() ? parts_.executor->capacity() : 0; }
  /// Whatever layers want beforehand for batches of so many samples, and the norm of their gradients.
  void prepare(long count) {
    executor().prepare(count);
    [[maybe_unused]] const auto here = step_memory().enter();
    ops::prepare_sum_of_squares<Device, Scalar>(Parts::stored);
  }
  /// The outputs for the samples of the last evaluation, on the model's device, `OutputPitch` values apart.
  const Scalar* outputs() const { return parts_.executor->outputs(); }
  nn::StepMemory<Device>& step_memory() { return executor().step_memory(); }
  PolicyState& policy_state() { return parts_.policy_state; }
  const PolicyState& policy_state() const { return parts_.policy_state; }
  typename Parts::Bound& optimizer() { return parts_.optimizer; }
  /// Parameters, buffers and the optimizer's arrays, as this rank has them and as files have them.
  StepArrays<Parts> arrays() { return {parts_, whole_}; }
  /// Do ranks have slices of its state? All ranks answer alike.
  bool slices_state() const { return parts_.slices_state(); }
  /// What a chain with Needs::curvature remembers.
  typename Parts::Curvature& curvature() { return parts_.curvature; }

  const Loss& loss() const { return parts_.loss; }
  /// Optimizer steps so far, without those that were skipped. Waits for a device where the loss is scaled.
  std::int64_t steps() const { return update_scale(), step_; }
  void set_steps(std::int64_t n) { step_ = n; }
  /// How the loss is scaled: dynamically for fp16, not at all for bf16, as they come. An accumulation that has begun is given up
  /// where that is another. Throws ArgumentError for values that cannot scale.
  void set_loss_scaling(const optim::LossScaling& scaling) requires Model::scales_loss {
    scaling.check();
    update_scale();
    if (scaling == scale_.scaler().options()) return;
    scale_.set(scaling), accumulated_ = 0;  // gradients that wait for their update have the scale before
    parts_.device.forget();                 // a captured step looks for overflows, or does not
  }
  /// The scale as it stands. Waits for a device.
  optim::LossScaler& loss_scaler() requires Model::scales_loss { return update_scale(), scale_.scaler(); }
  /// Was the update of the last step that had one left out, since its loss or the norm of its gradients is not finite: see
  /// optim::StepOptions::finite.
  bool left_out() const { return left_out_; }
  /// The gradient norm of the last step that was clipped; 0 before. Waits for a device that has it.
  double gradient_norm() const {
    if constexpr (on_host<Device>) return parts_.update_memory.norm;
    else return step_ > 0 ? parts_.device.norm(parts_.policy_state) : 0;
  }

 private:
  /// The stages between two captures of a device, and on the host.
  using Stages = std::conditional_t<
      on_host<Device>, StageList<ForwardBackward, SumShards, ExchangeGradients, BeginUpdate, LookForOverflow, Transform, Update>,
      StageList<ForwardBackward, ExchangeGradients, DeviceUpdate>>;

  /// The step that these options ask for. Counts it.
  template <class View> State begin(const View& batch, const optim::StepOptions& options, PolicySink<Parts>& policy) {
    if (accumulated_ == 0)
      expected_weight_ = Executor::expected_batch_weight(options.samples_of(batch.global_count)), samples_ = 0;
    samples_ += static_cast<long>(batch.count);
    const double clip = optim::clip_norm_of(parts_.optimizer.optimizer(), options.clip_norm);  // may throw: before it counts
    const bool exchange = options.update && parts_.policy_state.synchronizes_gradients();
    if (options.update) ++step_;
    return {.batch = &batch,
            .call = {.scale = 1 / expected_weight_,
                     .loss_scale = scale_.scaler().scale(),
                     .accumulate = options.accumulate,
                     .key = optim::key_of_step(options, model().seed(), step_ + !options.update, accumulated_),
                     .global_count = static_cast<long>(batch.global_count)},
            .sinks = policy.sinks(exchange, step_),
            .update = options.update,
            .exchange = exchange,
            .look = Model::scales_loss && scale_.scaler().active(),
            .finite = on_host<Device> && options.finite,
            .agrees = PolicyState::local_sums && !parallel::ServesUpdates<PolicyState> && options.finite && !options.stops &&
                      parts_.policy_state.ranks() > 1,
            .number = step_,
            .lr = static_cast<double>(parts_.optimizer.optimizer().lr) * options.lr_factor,
            .expected_weight = expected_weight_,
            .clip = clip};
  }
  /// The region of a step; on a device it may be captured, and replayed. One that throws was no step: it is not counted, and an
  /// accumulation begins anew (but the factors of Kfac may have its batch in them already).
  void launch(State& step, const optim::StepOptions& options) {
    const bool as_graph = options.graph && captures(parts_, step);
    try {
      parts_.device.run(step_memory(), as_graph, StepLaunch<Stages, Parts>{parts_, step});
    } catch (...) {
      if (step.update) --step_, model().weights().changed();  // some worker may have updated its part
      parts_.buffers.give_back(model().buffers());
      accumulated_ = 0;
      throw;
    }
  }
  /// After an update: the sums of the epoch, the scale of the loss, what the policy does with the weights.
  void finish(const State& step) {
    left_out_ = step.left_out;
    if (left_out_) [[unlikely]]
      return --step_, parts_.buffers.give_back(model().buffers());
    if constexpr (on_host<Device>) parts_.device.add(sums_);
    if constexpr (Model::scales_loss) {
      const bool overflowed = on_host<Device> && step.look && parts_.update_memory.overflowed;  // a device sees to it itself
      scale_.note(overflowed);
      if (overflowed && !std::isfinite(step.sums.loss)) parts_.buffers.give_back(model().buffers());
      if (overflowed) return update_scale();
    }
    parts_.weights->changed();  // by the optimizer, and by what follows: no pass begins in between
    (void)parts_.policy_state.after_step({step_, samples_, step.expected_weight});
  }
  /// Takes note of whether the last step counts: the scale and the steps follow.
  void update_scale() const {
    if constexpr (Model::scales_loss)
      if (!scale_.last_counts(parts_.device)) --step_;
  }

  Sums result([[maybe_unused]] bool exchanged) {
    if constexpr (on_host<Device>) return sums_;
    else
      return exchanged && !PolicyState::local_sums
                 ? parts_.device.result(nullptr, parts_.tail(), policy_state())
                 : parts_.device.result(parts_.executor->step_memory().sums(), nullptr, policy_state());
  }

  Parts parts_;
  ExecutorOptions asked_{};
  typename StepArrays<Parts>::Whole whole_;  // while they are saved
  nn::LossSums sums_{};
  bool left_out_ = false;
  double expected_weight_ = 1;          // of all samples of a step, by their number
  long accumulated_ = 0, samples_ = 0;  // calls of this step before this one; samples of all of them
  mutable std::int64_t step_ = 0;
  mutable LossScaleState<Model> scale_;
};

}  // namespace skein::inline SKEIN_ABI::train
