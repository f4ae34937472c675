// SPDX-License-Identifier: Apache-2.0
// TrainStep: everything that one training step needs, bound together: model, loss, optimizer with its state, a policy's state
// and the pass. Trainer::fit is a loop around step(); a loop written by hand calls the same and is as fast.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <unistd.h>

#include "../device/copy.hpp"
#include "../nn/executor.hpp"
#include "../optim/loss_scaler.hpp"
#include "../optim/state.hpp"
#include "../parallel/concepts.hpp"
#include "step/host_update.hpp"
#include "step_device.hpp"

namespace skein::inline SKEIN_ABI::train {

/// What may change from step to step.
struct StepOptions {
  double lr_factor = 1;     ///< schedule: a factor of the optimizer's lr
  double clip_norm = 0;     ///< 0: no clipping
  bool accumulate = false;  ///< add to the gradients of the call before
  bool update = true;       ///< false: gradients only (all but the last call of an accumulation)
  std::uint64_t key = 0;    ///< of this step's random numbers
  bool graph = true;        ///< may the step be captured and replayed, where the device has such
};

template <class Model, class Loss, class Optimizer, class Policy = parallel::SingleProcess> class TrainStep {
  static_assert((optim::assert_optimizer<Optimizer>(), true));

 public:
  using Scalar = typename Model::Scalar;
  using Device = typename Model::device;
  static constexpr long Width = Model::output_extents.count(), OutputPitch = sample_pitch(Model::output_extents);
  using Replica = parallel::Replica<Scalar, Device>;
  using PolicyState = decltype(std::declval<const Policy&>().bind(std::declval<const Replica&>()));
  /// nn::LossSums, or (on a device of its own) what becomes those when somebody asks, who waits then.
  using Sums = typename StepDevice<Scalar, Device>::Sums;

  /// Virtual shards of a policy that has such; 0: none.
  static constexpr int virtual_shards = PolicyState::virtual_shards;
  static_assert(virtual_shards == 0 || on_host<Device>,
                "Reproducible is for the host: kernels and libraries of a GPU do not promise the same bits");
  static_assert(virtual_shards == 0 || !Model::sizes.couples_batch,
                "Reproducible: a virtual shard is a batch of its own, and batch normalisation would take its statistics from "
                "that: use LayerNorm "
                "in its place, or DataParallel without Reproducible");
  static_assert(!parallel::ServesUpdates<PolicyState> || on_host<Device>,
                "ParameterServer is for the host: a server updates weights in the host's memory");
  static_assert(!parallel::ServesUpdates<PolicyState> || !(optim::has_stages<Optimizer> || optim::clips_first<Optimizer>),
                "ParameterServer: a server updates by gradients as they come and never has those of all ranks at once: its chain "
                "takes elementwise transforms alone");
  static_assert(!parallel::OwnsPart<PolicyState> || parallel::ServesUpdates<PolicyState> || !optim::needs_tensors<Optimizer>,
                "Sharded cuts the parameters anywhere, and a transform of tensors (Lars) wants each of them whole: take "
                "DataParallel without Sharded, or elementwise transforms and ClipNorm");
  static_assert(
      on_host<Device> || !optim::has_stages<Optimizer>,
      "on a GPU a chain takes ClipNorm at its head and elementwise transforms: one that needs tensors (Lars), or a norm "
      "further on, runs on the host");

  /// Initial weights are agreed here: all ranks make their TrainStep at the same time.
  TrainStep(Model& model, Loss loss, const Optimizer& optimizer, const Policy& policy)
      : model_(&model), loss_(std::move(loss)), optimizer_(optimizer, Model::program, model.where(), owned(policy)),
        policy_state_(policy.bind(replica(model, optimizer_))), device_(model.where()) {
    const auto lease = model.modify();  // weights may come from another rank
    policy_state_.start();
  }

  /// Makes memory for calls of at most `options.batch` samples of this rank, unless it is there. Keeps everything else.
  void reserve(ExecutorOptions options) {
    if (options.threads <= 0) options.threads = threads();
    if constexpr (virtual_shards > 0)
      options.shards = plan::virtual_shards(virtual_shards, policy_state_.ranks(), policy_state_.rank());
    if (executor_ && executor_->capacity() >= options.batch && options.execution == asked_.execution &&
        options.block == asked_.block && options.threads == asked_.threads && options.denormals == asked_.denormals)
      return;
    asked_ = options;
    device_.forget();
    executor_ = std::make_unique<Executor<Model, Loss>>(*model_, loss_, options);
    device_.reserve(options.batch * Executor<Model, Loss>::input_pitch, Loss::target == nn::TargetKind::label ? options.batch : 0,
                    Loss::target == nn::TargetKind::vector ? options.batch * std::max(row_pitch(Width), OutputPitch) : 0);
    update_.reserve(*executor_);
    if constexpr (virtual_shards > 0) policy_state_.set_partial_sums(executor_->subtree_sums());
  }

  /// One step on this rank's samples of a batch: forward, loss, backward, the policy's exchange, the optimizer. Returns the sums
  /// over all ranks. Allocates nothing, and waits for no device (but where the loss is scaled: whether the step before counts). A
  /// step whose gradients overflow leaves parameters, state and steps() as they were. Batch: see Executor; in the host's memory,
  /// or the device's.
  template <class Batch> Sums step(const Batch& given, const StepOptions& options = {}) {
    check_labels(given);
    if constexpr (virtual_shards > 0) check_share(given);
    [[maybe_unused]] const auto here = executor_->memory().enter();
    const auto& batch = device_.stage(given);
    const double expected_weight =
        accumulated_ == 0 ? Executor<Model, Loss>::expected_batch_weight(batch.global_count) : expected_weight_;
    expected_weight_ = expected_weight;
    samples_ = (accumulated_ == 0 ? 0 : samples_) + static_cast<long>(batch.count);
    update_loss_scale();
    const ExecutorCall call{.scale = 1 / expected_weight,
                            .loss_scale = scaler_.scale(),
                            .accumulate = options.accumulate,
                            .key = options.key,
                            .global_count = static_cast<long>(batch.global_count)};
    if (accumulated_ == 0) {  // of an accumulation, its first batch
      auto lease = model_->modify();
      if (!policy_state_.before_step(step_ + 1)) lease.unchanged();
    }
    const bool exchange = options.update && policy_state_.synchronizes_gradients();
    PolicySink policy(policy_state_);
    nn::ExecutorSinks sinks;
    if (exchange && virtual_shards == 0) sinks.gradients = &policy;  // else nothing is exchanged before the shards are summed
    if constexpr (parallel::ReducesStatistics<PolicyState>) sinks.statistics = &policy;
    const double lr = static_cast<double>(optimizer_.optimizer().lr) * options.lr_factor;
    const double clip = optim::clip_norm_of(optimizer_.optimizer(), options.clip_norm);
    if (options.update) ++step_;
    [[maybe_unused]] const long replays = replays_of(device_);
    if constexpr (!on_host<Device>)
      if (options.graph && !capturable(exchange) && device_.note().empty())
        device_.set_note("steps are launched kernel by kernel, since the policy's communication cannot be captured");
    device_.run(
        executor_->memory(), options.graph && capturable(exchange),
        [&] { return kind(batch, call, expected_weight, exchange, options); }, [&] { executor_->begin(batch, call); },
        [&] {
          run(options.update, [&](Worker& w) {
            executor_->forward_backward(w, batch, call, sinks);
            w.barrier();
            if constexpr (virtual_shards > 0) {
              if (options.update) executor_->sum_shards(w);
              w.barrier();
            }
            if (w.index == 0) finish_exchange(exchange, options.update);
            if (!options.update) return;
            w.barrier();
            optimize(w, exchange, lr, clip);
          });
        },
        [&] {
          if (options.update) optimize(Worker{}, exchange, lr, clip);
        });
    device_.finish();
    if (exchange && replays_of(device_) != replays) policy_state_.replayed();
    accumulated_ = options.update ? 0 : accumulated_ + 1;
    if (!options.update) return result(false);
    if constexpr (on_host<Device>) device_.add(sums_);
    if constexpr (Model::scales_loss) {
      scale_pending_ = scaler_.active();
      if constexpr (on_host<Device>) overflowed_ = scaler_.active() && update_.overflowed();
      if (on_host<Device> && overflowed_) {  // on all ranks
        update_loss_scale();
        return result(exchange);
      }
    }
    {
      const auto lease = model_->modify();  // of what the optimizer has written, too
      (void)policy_state_.after_step({step_, samples_, expected_weight});
    }
    return result(exchange);
  }

  /// Forward and loss of this rank's samples, in evaluation phase. Sums are of this rank alone: of this batch, or with
  /// `accumulate` of those before it too.
  template <class Batch> Sums evaluate(const Batch& given, bool accumulate = false) {
    check_labels(given);
    [[maybe_unused]] const auto here = executor_->memory().enter();
    const auto& batch = device_.stage(given);
    executor_->begin(batch, {});
    executor_->run([&](Worker& w) { executor_->evaluate(w, batch, accumulate); });
    device_.finish();
    if constexpr (on_host<Device>) sums_ = executor_->sums();
    return result(false);
  }

  /// On a rank that serves, in place of steps: returns when those that train have finished. factor(step) is the schedule's, from
  /// 0.
  template <class Factor> void serve(const Factor& factor) requires on_host<Device> {
    struct Context {
      TrainStep* train_step;
      const Factor* factor;
    } context{this, &factor};
    policy_state_.serve(
        {&context,
         [](void* object, const parallel::ShardUpdate& u) {
           const Context& c = *static_cast<Context*>(object);
           c.train_step->apply(u, static_cast<double>((*c.factor)(u.step - 1)));
         },
         optimizer_.arrays(),
         [](void* object, int k) -> void* { return static_cast<Context*>(object)->train_step->optimizer_.array(k).data; }});
  }

  /// Sums of all updates since set_totals(), over all ranks. Waits for a device that has them.
  nn::LossSums totals() const {
    const nn::LossSums sums = device_.totals();
    policy_state_.check();
    return sums;
  }
  void set_totals(const nn::LossSums& sums) { device_.set_totals(sums); }
  /// The part that is the device's: how the step is launched.
  const StepDevice<Scalar, Device>& device() const { return device_; }

  /// Threads that a rank gets by default: the cores it may use, shared with the other ranks of this machine that use the same.
  int threads() const {
    const int cores = available_cores(), sharing = policy_state_.local_ranks();
    if (std::getenv("SKEIN_THREADS")) return Workers::default_count();
    const bool bound = cores < static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));  // mpirun bound this rank to its own
    return bound && !policy_state_.threads_of_one_process() ? cores : std::max(1, cores / std::max(1, sharing));
  }

  Model& model() const { return *model_; }
  /// After reserve().
  Executor<Model, Loss>& executor() { return *executor_; }
  bool reserved() const { return executor_ != nullptr; }
  PolicyState& policy_state() { return policy_state_; }
  const PolicyState& policy_state() const { return policy_state_; }
  optim::BoundOptimizer<Optimizer, Scalar, Device>& optimizer() { return optimizer_; }

  /// The optimizer's array k, whole, in the layout of the parameters. Where ranks have parts of it, all call gather_state()
  /// before, rank 0 has it then until drop_state().
  DeviceSpan<Scalar, Device> state(int k) {
    if constexpr (parallel::OwnsPart<PolicyState>)
      if (!gathered_.empty()) return gathered_[static_cast<std::size_t>(k)].span();
    return optimizer_.array(k);
  }
  void gather_state() {
    if constexpr (parallel::OwnsPart<PolicyState>) {
      gathered_.clear();
      const bool apart = parallel::ServesUpdates<PolicyState> || !optimizer_.whole();
      for (int k = 0; apart && k < optimizer_.arrays(); ++k) {
        Arena<Scalar, Device> all(static_cast<std::size_t>(Model::sizes.stored), model_->where());
        policy_state_.gather(optimizer_.array(k), all.span());
        if (policy_state_.rank() == 0) gathered_.push_back(std::move(all));
      }
    }
  }
  void drop_state() { gathered_.clear(); }
  /// Sets the optimizer's array k from a whole one of the host: what is owned of it.
  void set_state(int k, const Scalar* values) {
    const auto array = optimizer_.array(k);
    Copy<Device, Cpu>::run(array.data, values + optimizer_.owned().begin, array.size * sizeof(Scalar), model_->where(), Cpu{});
  }
  const Loss& loss() const { return loss_; }
  /// Optimizer steps so far, without those that were skipped. Waits for a device where the loss is scaled.
  std::int64_t steps() const {
    update_loss_scale();
    return step_;
  }
  void set_steps(std::int64_t n) { step_ = n; }
  /// How the loss is scaled: dynamically for fp16, not at all for bf16, as they come. Throws ArgumentError for values that cannot
  /// scale.
  void set_loss_scaling(const optim::LossScaling& scaling) requires Model::scales_loss {
    scaling.check();
    update_loss_scale();
    if (scaling == scaler_.options()) return;
    scaler_ = optim::LossScaler(scaling);
    device_.forget();  // a captured step looks for overflows, or does not
  }
  /// The scale as it stands. Waits for a device.
  optim::LossScaler& loss_scaler() requires Model::scales_loss {
    update_loss_scale();
    return scaler_;
  }
  /// The gradient norm of the last step that was clipped; 0 before. Waits for a device that has it.
  double gradient_norm() const {
    if constexpr (on_host<Device>) return update_.norm();
    else return step_ > 0 ? device_.read_scale().norm : 0;
  }

 private:
  /// The policy as the executor sees it.
  struct PolicySink final : nn::GradientSink {
    explicit PolicySink(PolicyState& s) : state(s) {}
    void gradient_ready(long begin, long end) override { state.gradient_ready(begin, end); }
    void reduce_statistics([[maybe_unused]] double* values, [[maybe_unused]] long n) override {
      if constexpr (parallel::ReducesStatistics<PolicyState>) state.reduce_statistics(values, n);
    }
    PolicyState& state;
  };

  /// An update of part of the parameters by what lies in the gradient arena there.
  void apply(const parallel::ShardUpdate& update, double lr_factor) {
    const Scalar* gradients = model_->gradient_arena().data;
    optim::StepCall<Scalar> call;
    call.step = update.update;
    call.lr = static_cast<double>(optimizer_.optimizer().lr) * lr_factor;
    call.gradient_scale = update.scale;
    call.gradients = &gradients;
    const auto lease = model_->modify();
    optimizer_.update(lease.data(), call, update.range.begin, update.range.end);
  }

  /// What of the parameters this rank updates, and has the optimizer's state of.
  static plan::Range owned(const Policy& policy) { return policy.owned(Model::sizes.stored); }
  static Replica replica(Model& model, optim::BoundOptimizer<Optimizer, Scalar, Device>& optimizer) {
    Replica r;
    r.parameters = model.weights().unguarded();
    r.gradients = model.gradient_arena();
    r.buffers = model.buffers();
    for (int k = 0; optimizer.whole() && k < optimizer.arrays(); ++k) r.state.push_back(optimizer.array(k));
    r.operations = Model::program.ops();
    r.entries = Model::program.parameters();
    r.stored = Model::sizes.stored;
    r.where = model.where();
    Fnv1a f;
    f.add(Model::fingerprint).add(sizeof(Scalar)).add(Model::input::extents);
    if (Model::precision::mixed) f.add(skein::detail::scalar_name<typename Model::precision::compute>());
    r.fingerprint = f.value();
    return r;
  }

  /// Before the parallel region, so that nothing has been changed by a wrong batch. Labels that are on a device already are their
  /// owner's care.
  template <class Batch> void check_labels(const Batch& batch) const {
    if constexpr (Loss::target == nn::TargetKind::label && std::same_as<DeviceOf<Batch>, Cpu>) {
      std::optional<std::int32_t> ignore;
      if constexpr (requires { loss_.ignore_label; }) ignore = loss_.ignore_label;
      if (batch.labels) nn::check_labels(batch.labels, batch.count, Width, ignore);
    }
  }

  /// A rank's samples are those of its virtual shards, which the size of the whole batch gives.
  template <class Batch> void check_share(const Batch& batch) const {
    const plan::VirtualShards s = plan::virtual_shards(virtual_shards, policy_state_.ranks(), policy_state_.rank());
    const long n = static_cast<long>(batch.global_count);
    const auto share = plan::shard_begin(n, s.total, s.end) - plan::shard_begin(n, s.total, s.begin);
    if (batch.count != share)
      throw ArgumentError("Reproducible: of a batch of " + std::to_string(n) + " this rank's virtual shards have " +
                          std::to_string(share) + " samples, it is given " + std::to_string(batch.count) +
                          ": give data::Loader .shards = " + std::to_string(virtual_shards));
  }

  /// The region of a step. One that throws was no step: it is not counted, and an accumulation begins anew.
  template <class Function> void run(bool update, Function&& f) {
    try {
      executor_->run(f);
    } catch (...) {
      if (update) --step_, model_->weights().changed();  // some worker may have updated its part
      accumulated_ = 0;
      throw;
    }
  }

  /// Worker 0, all workers have ended backward: gradients and sums become those of all ranks.
  void finish_exchange(bool exchange, [[maybe_unused]] bool update) {
    executor_->finish();
    if (exchange) policy_state_.finish_gradients();
    if constexpr (virtual_shards > 0) {
      const Scalar* sum = tail();  // summed as the gradients are, with or without other ranks
      sums_ = update ? nn::LossSums{static_cast<double>(sum[0]), static_cast<double>(sum[1]), static_cast<double>(sum[2])}
                     : executor_->shard_sums();
      weight_ = sums_.weight;
    } else if constexpr (on_host<Device>) {  // else they stay where they are
      if (!exchange || PolicyState::local_sums) sums_ = executor_->sums();
      weight_ = sums_.weight;
      if (exchange) {
        const Scalar* sum = tail();
        weight_ = static_cast<double>(sum[1]);
        if (!PolicyState::local_sums) sums_ = {static_cast<double>(sum[0]), weight_, static_cast<double>(sum[2])};
      }
    }
  }

  /// All that a captured step bakes in.
  template <class Batch> CapturedStepKey kind(const Batch& batch, const ExecutorCall& call, double expected_weight, bool exchange,
                                              const StepOptions& options) const {
    return {batch.x,
            batch.labels,
            batch.targets,
            batch.pitch,
            batch.target_pitch,
            batch.count,
            expected_weight,
            options.clip_norm,
            policy_state_.gradient_factor(),
            call.accumulate,
            options.update,
            exchange,
            static_cast<long>(batch.global_count)};
  }
  template <class D> static long replays_of(const D& device) {
    if constexpr (requires { device.replays(); }) return device.replays();
    else return 0;
  }
  /// Collectives within a step must be such that the device's stream can keep them: their policy state says `capturable`.
  bool capturable(bool exchange) {
    if constexpr (on_host<Device>) return false;
    else return !exchange || PolicyState::capturable;
  }
  Sums result([[maybe_unused]] bool exchanged) {
    if constexpr (on_host<Device>) return sums_;
    else
      return exchanged && !PolicyState::local_sums ? device_.result(nullptr, tail())
                                                   : device_.result(executor_->memory().sums(), nullptr);
  }
  Scalar* tail() { return model_->gradient_arena().data + Model::sizes.stored; }

  void optimize(const Worker& w, bool exchanged, double lr, double clip) {
    if constexpr (!on_host<Device>) return optimize_there(exchanged, lr, clip);
    else optimize_here(w, exchanged, lr, clip);
  }
  /// Where the sums are known to the device alone: it makes the factor, and the pass reads that.
  void optimize_there(bool exchanged, double lr, double clip) {
    [[maybe_unused]] const auto arguments = device_.arguments(executor_->memory());
    optim::StepCall<Scalar> call;
    call.step = step_;
    call.lr = lr;
    call.gradients = update_.gradients().data();
    const plan::Range own = policy_state_.owned(Model::sizes.stored);
    ops::StepScaleCall<Scalar> scale{.expected_weight = policy_state_.gradient_factor() * expected_weight_};
    if constexpr (Model::scales_loss) scale.values = executor_->memory().values();
    if (const optim::ClipNorm norm{static_cast<float>(clip)}; norm.active() || scaler_.active()) {
      optimizer_.sum_of_squares(call, own.begin, own.end, device_.squares());  // not finite where a gradient is not
      if constexpr (parallel::OwnsPart<PolicyState>) policy_state_.reduce_there(DeviceSpan<double, Device>(device_.squares(), 1));
      scale.squares = device_.squares();
      scale.clip_norm = static_cast<double>(norm.max_norm);
    }
    device_.finish_sums(exchanged && !PolicyState::local_sums ? nullptr : executor_->memory().sums(), exchanged, tail(), scale);
    call.scale = device_.scale();
    optimizer_.update(model_->weights().unguarded().data, call, own.begin, own.end);
  }
  void optimize_here(const Worker& w, bool exchanged, double lr, double clip) {
    double scale = weight_ > 0 ? policy_state_.gradient_factor() * expected_weight_ / weight_ : 0;
    if constexpr (Model::scales_loss) scale /= scaler_.scale();
    update_.run(w, optimizer_, policy_state_,
                {.parameters = model_->weights().unguarded().data,
                 .step = step_,
                 .lr = lr,
                 .scale = scale,
                 .clip = clip,
                 .exchanged = exchanged,
                 .look = Model::scales_loss && scaler_.active()});
  }
  /// Takes note of whether the last step counts: the scale and the steps follow.
  void update_loss_scale() const {
    if constexpr (Model::scales_loss) {
      if (!scale_pending_) return;
      scale_pending_ = false;
      if constexpr (!on_host<Device>) overflowed_ = device_.read_scale().skip != 0;
      if (!scaler_.update(overflowed_)) --step_;
      overflowed_ = false;
    }
  }
  static constexpr optim::LossScaling usual_scaling() {
    return std::same_as<typename Model::Activation, fp16> ? optim::LossScaling::dynamic() : optim::LossScaling::none();
  }

  Model* model_;
  Loss loss_;
  optim::BoundOptimizer<Optimizer, Scalar, Device> optimizer_;
  PolicyState policy_state_;
  StepDevice<Scalar, Device> device_;
  ExecutorOptions asked_{};
  std::unique_ptr<Executor<Model, Loss>> executor_;
  HostUpdate<Model, Optimizer, PolicyState> update_;
  std::vector<Arena<Scalar, Device>> gathered_;  // the whole state of a sharded optimizer, while it is saved
  nn::LossSums sums_{};
  double expected_weight_ = 1, weight_ = 0;  // weight_: of all samples whose gradients the step has
  long accumulated_ = 0, samples_ = 0;       // calls of this step before this one; samples of all of them
  mutable std::int64_t step_ = 0;
  mutable optim::LossScaler scaler_{usual_scaling()};
  mutable bool overflowed_ = false, scale_pending_ = false;  // of the last step; has scaler_ not heard of it yet
};

}  // namespace skein::inline SKEIN_ABI::train
