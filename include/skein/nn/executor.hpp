// SPDX-License-Identifier: Apache-2.0
// Executor: one model's forward, loss and backward over a batch, by the workers of a rank. Owns what is remembered
// (activations, scratch, packed weights, the other workers' gradients), made once for the largest batch; a step allocates
// nothing. Two executors: layer by layer over the whole batch (gradients become ready early, from the back), or depth-first
// by blocks of samples (small networks stay in the host's cache; gradients are ready at the end). A device of its own runs layer
// by layer, given its work by one host thread that waits for nothing; only sums() does.
#pragma once
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "../core/error.hpp"
#include "../core/workers.hpp"
#include "../ops/elementwise.hpp"
#include "../ops/step_scale.hpp"
#include "activations.hpp"
#include "batch_on_device.hpp"
#include "loss/loss.hpp"
#include "model.hpp"
#include "executor_options.hpp"
#include "step_memory.hpp"

namespace skein::inline SKEIN_ABI {

template <class Model, class Loss> class Executor {
  static_assert((nn::assert_loss<Loss>(), true));

 public:
  using Scalar = typename Model::Scalar;
  using Activation = typename Model::Activation;
  using Device = typename Model::device;
  using Input = typename Model::input;
  using View = BatchView<Scalar, Device>;
  static constexpr nn::MemoryRequirements sizes = nn::analyze<typename Model::fused>(Input::extents);
  static constexpr long input_pitch = sample_pitch(Input::extents), output_pitch = sample_pitch(sizes.output);
  static constexpr long width = sizes.output.count();

  /// Makes all memory. Throws ArgumentError for options that the network cannot have.
  Executor(Model& model, Loss loss, ExecutorOptions options)
      : model_(&model), loss_(std::move(loss)),
        options_(nn::resolve_options<Device>(options, sizes, sizeof(Scalar), sizeof(Activation))), memory_(model.where()),
        table_(loss_, model.where()),
        workers_(std::make_unique<Workers>(on_host<Device> ? options_.threads : 1, options_.denormals)),
        capacity_(depth_first() ? options_.block : options_.batch), batch_on_device_(model.where()) {
    const Device where = model.where();
    const int threads = workers_->size(), sets = depth_first() ? threads : 1;
    for (int i = 0; i < sets; ++i)
      sets_.emplace_back(nn::ActivationSizes{sizes, backward_scratch, input_pitch, output_pitch}, capacity_, where);
    subtrees_ = plan::subtrees(options_.shards);
    for (int w = 1; options_.training && w < (options_.shards ? options_.shards.count() : threads); ++w)
      partial_.emplace_back(static_cast<std::size_t>(sizes.stored + gradient_tail), where);
    for (int w = 0; w < threads; ++w) workspace_.emplace_back(static_cast<std::size_t>(sizes.workspace + 16), where);
    outputs_ = Arena<Scalar, Device>(static_cast<std::size_t>(options_.batch * output_pitch), where);
    packed_weights_ = Arena<Scalar, Device>(static_cast<std::size_t>(sizes.packed_weights), where);
    if constexpr (mixed) {
      const long slice = depth_first() ? capacity_ : (capacity_ + threads - 1) / threads;
      for (int w = 0; w < threads; ++w)
        converted_.conversion.emplace_back(static_cast<std::size_t>(conversion.total(slice)), where);
      if constexpr (conversion.reads_weights)
        converted_.weights = Arena<Activation, Device>(static_cast<std::size_t>(sizes.stored), where);
    }
    exchange_ = Arena<double>(static_cast<std::size_t>(threads * exchange_size));
    states_ = std::make_unique<State[]>(static_cast<std::size_t>(threads));
    for (int w = 0; w < threads; ++w) make_run(w);
    find_ranges();
  }

  Model& model() const { return *model_; }
  const Loss& loss() const { return loss_; }
  Workers& workers() { return *workers_; }
  long capacity() const { return options_.batch; }
  bool depth_first() const { return options_.execution == Execution::depth_first; }
  /// (batch, output_pitch): what the last forward of this rank gave.
  const Scalar* outputs() const { return outputs_.data(); }
  /// The gradients of worker w: worker 0's is the model's own. With virtual shards: of this rank's shard w.
  Scalar* gradients(int w) { return w == 0 ? model_->gradient_arena().data : partial_[static_cast<std::size_t>(w - 1)].data(); }
  /// Ranges of the parameter arena whose gradient is the sum over workers; elsewhere worker 0's alone is whole.
  std::span<const plan::Range> summed_ranges() const { return summed_; }

  /// Bytes of the arenas that grow with the batch: activations, their gradients, what layers keep of them.
  std::size_t activation_bytes() const {
    std::size_t n = outputs_.size() * sizeof(Scalar);
    for (const Set& s : sets_) n += s.bytes();
    return n;
  }

  /// All that the model and this executor hold. After prepare(): with what the layers have reserved.
  MemoryPlan memory_plan() const {
    MemoryPlan m;
    m.parameters = static_cast<std::size_t>(sizes.stored) * sizeof(Scalar);
    m.gradients = static_cast<std::size_t>(sizes.stored + gradient_tail) * sizeof(Scalar) * (options_.training + partial_.size());
    m.buffers = static_cast<std::size_t>(sizes.buffers) * sizeof(Scalar);
    m.packed_weights = packed_weights_.size() * sizeof(Scalar);
    if constexpr (conversion.reads_weights) m.packed_weights += converted_.weights.size() * sizeof(Activation);
    m.activations = activation_bytes();
    for (const auto& w : workspace_) m.workspace += w.size() * sizeof(Scalar);
    m.libraries = static_cast<std::size_t>(memory_.workspace_bytes());
    return m;
  }
  /// Lines on what the device's libraries chose for the batches that were prepared, and what they did not do; empty on the host.
  std::string choices_text() const { return memory_.choices_text(); }

  // ---- one call for hand-written loops ---------------------------------------------------------------------------------

  /// Forward, loss, backward. The gradients of the rank are in model().gradients() afterwards: those of the sum of losses
  /// times call.scale. The batch (device/batch.hpp) is in memory of the host or of the model's device. Waits for a device
  /// (train::TrainStep does not).
  template <class Given> nn::LossSums forward_backward(const Given& given, ExecutorCall call) {
    if (!options_.training)
      throw ArgumentError("Executor: one that was made with .training = false has no gradients: it evaluates and predicts");
    if (options_.shards) throw ArgumentError("Executor: the gradients of virtual shards are summed by train::TrainStep");
    [[maybe_unused]] const auto here = memory_.enter();
    const auto& seen = batch_view<Scalar, Device>(given);
    const View& batch = batch_on_device_(seen);
    begin(batch, call);
    const bool folded = reduced_;  // the last call's partial gradients are in the model's already
    run([&](Worker& w) {
      if (call.accumulate && folded && w.index > 0) partial_[static_cast<std::size_t>(w.index - 1)].clear();
      forward_backward(w, batch, call, ExecutorHooks{});
      w.barrier();
      reduce_workers(w);
    });
    finish();
    reduced_ = true;
    return sums();
  }
  /// The same with the gradient of the mean loss over this batch.
  template <class Given> nn::LossSums forward_backward(const Given& given) {
    const auto& batch = batch_view<Scalar, Device>(given);
    return forward_backward(batch, ExecutorCall{.scale = 1.0 / expected_batch_weight(batch.count)});
  }
  /// Forward and loss in evaluation phase; outputs() holds the outputs.
  template <class Given> nn::LossSums evaluate(const Given& given) {
    [[maybe_unused]] const auto here = memory_.enter();
    const auto& seen = batch_view<Scalar, Device>(given);
    const View& batch = batch_on_device_(seen);
    begin(batch, {});
    run([&](Worker& w) { evaluate(w, batch); });
    return sums();
  }

  /// What an unweighted loss divides by: samples, or samples times outputs.
  static constexpr double expected_batch_weight(long samples) {
    const double n = static_cast<double>(samples > 0 ? samples : 1);
    return Loss::target == nn::TargetKind::vector ? n * static_cast<double>(width) : n;
  }

  /// What the device reads of a step, beside the batch. The calling thread has entered memory().
  nn::StepMemory<Device>& memory() { return memory_; }
  /// Before the parts: the numbers of the step go to the device. Does not wait.
  void begin(const View& batch, const ExecutorCall& call) {
    if constexpr (!on_host<Device>)
      memory_.begin({.key = call.key, .global_first = static_cast<std::uint64_t>(batch.first), .loss_scale = call.loss_scale});
  }

  /// One parallel region, in which every worker calls the parts. After an exception of any worker the next region begins afresh.
  template <class Function> void run(Function&& f) {
    try {
      workers_->run(f);
    } catch (...) {
      forget_progress();
      throw;
    }
  }

  // ---- the parts, called by every worker inside one parallel region ----------------------------------------------------

  /// Copies that layers derive of the weights are made anew where the weights have changed.
  void refresh(const Worker& w) {
    State& s = states_[static_cast<std::size_t>(w.index)];
    if (s.packed_version == model_->version()) return;
    model_->weights().assert_at_rest();
    if constexpr (conversion.reads_weights) {
      const auto [lo, hi] = w.slice(sizes.stored, 32);
      ops::convert<Device>(converted_.weights.data() + lo, s.run.parameters + lo, hi - lo);
      if constexpr (sizes.packed_weights == 0) w.barrier();
    }
    if constexpr (sizes.packed_weights > 0) {
      s.run.context.worker = w;
      Root::pack_weights(s.run, nn::ArenaOffsets{});
      w.barrier();
    }
    s.packed_version = model_->version();
  }

  SKEIN_NOINLINE void forward_backward(const Worker& w, const View& batch, const ExecutorCall& call, const ExecutorHooks& hooks) {
    State& s = states_[static_cast<std::size_t>(w.index)];
    if constexpr (!on_host<Device>)  // what is captured here makes copies of the weights anew in every replay
      if (conversion.reads_weights || !call.accumulate) s.packed_version = 0;
    refresh(w);
    s.run.context.key = call.key;
    s.run.context.worker = w;
    s.run.context.phase = nn::Phase::training;
    if constexpr (!on_host<Device>) s.run.context.values = memory_.values();
    if (!call.accumulate) {
      s.sums = {};
      memory_.clear_sums();
      if (!options_.shards) clear_gradients(s);
    }
    if (w.index == 0) {
      hooks_ = hooks;
      reported_ = sizes.stored + gradient_tail;
      reduced_ = false;
    }
    s.run.context.statistics_hook = hooks.statistics;
    s.run.context.hook = hooks.object;
    if (options_.shards) shards(s, w, batch, call);
    else if (depth_first()) blocks(s, w.slice(batch.count), batch, call);
    else whole(s, w, batch, call, hooks.ready != nullptr);
    s.progress.store(0, std::memory_order_release);
  }

  /// After every worker's forward_backward and a barrier: adds up the workers' gradients, each worker a part of the arena.
  void reduce_workers(const Worker& w) {
    if (w.count == 1) return;
    for (const plan::Range& r : summed_) {
      const auto [lo, hi] = w.slice(r.end - r.begin, 16);
      add_partials(r.begin + lo, r.begin + hi);
    }
  }

  /// The same for virtual shards: each subtree of the summation tree that this rank has whole becomes one array, in the place of
  /// its first shard. What lies behind the gradients (the sums of the batch) goes the same way.
  void sum_shards(const Worker& w) {
    const auto slice = w.slice(sizes.stored + gradient_tail, 16);
    for (const plan::TreeNode& node : subtrees_) {
      if (node.leaf()) continue;
      Scalar* const to = gradients(node.begin - options_.shards.begin);
      for (long at = slice.first; at < slice.second; at += tree_block) {
        const long n = std::min(tree_block, slice.second - at);
        Scalar scratch[tree_levels * tree_block];
        const Scalar* from = sum_tree(node, at, n, scratch);
        for (long i = 0; i < n; ++i) to[at + i] = from[i];
      }
    }
  }
  /// The sums of loss, weight and correct answers of this rank's shards, in their last call or accumulated calls.
  nn::LossSums shard_sums() {
    nn::LossSums all;
    for (int i = 0; i < options_.shards.count(); ++i) {
      const Scalar* tail = gradients(i) + sizes.stored;
      all += {static_cast<double>(tail[0]), static_cast<double>(tail[1]), static_cast<double>(tail[2])};
    }
    return all;
  }
  /// The arrays that sum_shards leaves to be exchanged, in the order of plan::subtrees.
  std::vector<Scalar*> subtree_sums() {
    std::vector<Scalar*> all;
    for (const plan::TreeNode& node : subtrees_) all.push_back(gradients(node.begin - options_.shards.begin));
    return all;
  }

  /// Worker 0, after the others have arrived, before a barrier: reports what has not been reported to the policy.
  void finish() {
    if (hooks_.ready) {
      advance();
      reduced_ = true;
    }
    forget_progress();
  }

  /// The sums are those of this batch, or with `accumulate` those of the last calls too.
  void evaluate(const Worker& w, const View& batch, bool accumulate = false) {
    State& s = states_[static_cast<std::size_t>(w.index)];
    refresh(w);
    if (!accumulate) {
      s.sums = {};
      memory_.clear_sums();
    }
    if constexpr (!on_host<Device>) s.run.context.values = memory_.values();
    s.run.context.worker = w;
    s.run.context.phase = nn::Phase::evaluation;
    s.run.context.ready_hook = nullptr;
    s.run.context.statistics_hook = nullptr;
    const auto [lo, hi] = w.slice(batch.count);
    if (!depth_first()) {
      s.run.context.first = lo;
      s.run.context.total = batch.count;
      forward_loss(s, batch, lo, hi, nullptr, 1);
      return;
    }
    for (long at = lo; at < hi; at += capacity_) {
      s.run.context.first = 0;
      s.run.context.total = std::min(capacity_, hi - at);
      forward_loss(s, batch, at, std::min(at + capacity_, hi), nullptr, 1);
    }
  }

  /// Sums of loss, weight and correct answers of this rank's last call (or accumulated calls). Waits for a device that has them.
  nn::LossSums sums() const {
    if constexpr (on_host<Device>) {
      nn::LossSums all;
      for (int w = 0; w < workers_->size(); ++w) all += states_[static_cast<std::size_t>(w)].sums;
      return all;
    } else {
      return memory_.read_sums();
    }
  }

  /// Whatever layers want to have before step 1 for a batch of this size (primitives); call once for each size to come.
  void prepare(long batch) {
    [[maybe_unused]] const auto here = memory_.enter();
    nn::prepare_loss<Device>();
    workers_->run([&](Worker& w) {
      State& s = states_[static_cast<std::size_t>(w.index)];
      const auto [lo, hi] = w.slice(batch);
      s.run.context.worker = w;
      s.run.batch = hi - lo;
      if (!depth_first()) return Root::prepare(s.run, nn::ArenaOffsets{});
      if (!options_.shards) return prepare_blocks(s, hi - lo);
      for (long n : {batch / options_.shards.count(), batch / options_.shards.count() + 1}) prepare_blocks(s, n);
    });
  }

 private:
  using Root = nn::Node<typename Model::fused, Input>;
  using Run = nn::Run<Scalar, Device, Activation>;
  static constexpr bool mixed = Model::precision::mixed;  // activations have a type of their own
  static constexpr nn::ConversionMemory find_conversion() {
    if constexpr (mixed) return Root::template conversion<Run>();
    else return {};
  }
  static constexpr nn::ConversionMemory conversion = find_conversion();
  static constexpr long backward_scratch = !mixed || conversion.passes ? sizes.backward_scratch : 0;
  static constexpr long nothing_ready = sizes.stored + 1;
  static constexpr long exchange_size = 4096;                // doubles a worker: sums of a normalisation layer
  static constexpr long tree_block = 512, tree_levels = 12;  // of sum_shards

  using Set = nn::Activations<Scalar, Activation, Device>;
  struct Converted {
    std::vector<Arena<Scalar, Device>> conversion;  // a worker each
    Arena<Activation, Device> weights;              // the parameters, for layers that compute in the activations' type
  };
  struct Nothing {};
  struct alignas(64) State {  // of one worker
    Run run{};
    Set* set = nullptr;
    nn::LossSums sums{};
    std::uint64_t packed_version = 0;
    std::atomic<long> progress{nothing_ready};  // gradients at and behind this offset are final
  };

  void make_run(int w) {
    State& s = states_[static_cast<std::size_t>(w)];
    s.set = &sets_[static_cast<std::size_t>(depth_first() ? w : 0)];
    Run& r = s.run;
    r.parameters = model_->parameters().data;
    if (options_.training) {
      r.gradients = gradients(options_.shards ? 0 : w);
      r.split_gradients = gradients(0);
    }
    r.buffers = model_->buffers().data;
    r.packed_weights = packed_weights_.data();
    r.batch_statistics = s.set->batch_statistics.data();
    r.kept_activations = s.set->kept_activations.data();
    r.saved_for_backward = s.set->saved_for_backward.data();
    r.backward_scratch = r.saved_for_backward + sizes.saved_for_backward * capacity_;
    r.saved_bytes = s.set->saved_bytes.data();
    r.scratch = s.set->scratch.data();
    r.workspace = workspace_[static_cast<std::size_t>(w)].data();
    if constexpr (mixed) {
      r.conversion = converted_.conversion[static_cast<std::size_t>(w)].data();
      r.weights = converted_.weights.data();
    }
    r.capacity = capacity_;
    r.context.exchange = exchange_.data();
    r.context.exchange_size = exchange_size;
    r.context.split = divides_gradients();
    r.context.math = Model::precision::math;
    r.context.worker.count = workers_->size();
  }

  /// Layers that divide a gradient among the workers read the samples of all: not where each converts its own.
  bool divides_gradients() const { return !mixed && !depth_first() && workers_->size() > 1; }

  void find_ranges() {
    auto append = [](std::vector<plan::Range>& to, plan::Range r) {
      if (!to.empty() && to.back().end == r.begin) to.back().end = r.end;
      else to.push_back(r);
    };
    Root::leaves(nn::ArenaOffsets{}, divides_gradients(), [&](const nn::LayerInfo& info, long offset, bool split) {
      const long n = info.stored_parameters();
      if (n == 0) return;
      if (!info.overwrites_gradients) append(cleared_, {offset, offset + n});
      if (!split) append(summed_, {offset, offset + n});
    });
  }

  /// This slice's input rows: the batch's own memory where its pitch and type are the arena's, else a copy.
  const Activation* input(State& s, const View& batch, long lo, long hi) {
    if constexpr (!mixed)
      if (batch.pitch == input_pitch) return batch.x + lo * input_pitch;
    Activation* to = s.set->input.data() + s.run.context.first * input_pitch;
    const Scalar* from = batch.x + lo * batch.pitch;
    if constexpr (mixed) ops::convert_rows<Device>(to, input_pitch, from, batch.pitch, hi - lo, static_cast<long>(Input::count));
    else ops::copy_rows<Device>(to, input_pitch, from, batch.pitch, hi - lo, static_cast<long>(Input::count));
    return to;
  }
  /// Where the network writes the outputs of a slice: what the loss reads, or what is converted to that.
  Activation* network_output(State& s, long lo) {
    if constexpr (mixed) return s.set->wide.output.data() + s.run.context.first * output_pitch;
    else return outputs_.data() + lo * output_pitch;
  }
  Scalar* loss_gradient(State& s) {
    if constexpr (mixed) return s.set->wide.gradient.data() + s.run.context.first * output_pitch;
    else return s.set->gradient.data() + s.run.context.first * output_pitch;
  }

  // Not inlined: the tree of layers is compiled once, not for each executor and phase.
  SKEIN_NOINLINE const Activation* forward_loss(State& s, const View& batch, long lo, long hi, Scalar* gradient, double scale) {
    s.run.batch = hi - lo;
    s.run.context.global_first = static_cast<std::uint64_t>((on_host<Device> ? batch.first : 0) + lo);  // else in values()
    Scalar* y = outputs_.data() + lo * output_pitch;
    const Activation* x = input(s, batch, lo, hi);
    Activation* out = network_output(s, lo);
    const Activation* at = Root::forward(s.run, nn::ArenaOffsets{}, x, out);
    if (at != out) ops::copy<Device>(out, at, (hi - lo) * output_pitch);
    if constexpr (mixed) ops::convert<Device>(y, out, (hi - lo) * output_pitch);
    nn::LossCall<Scalar, Device> call;
    call.outputs = y;
    call.output_pitch = output_pitch;
    call.width = width;
    if constexpr (Loss::target == nn::TargetKind::label) {
      call.labels = batch.labels ? batch.labels + lo : nullptr;
      if (!call.labels) return x;  // predict: nothing to compare with
    } else {
      call.targets = batch.targets ? batch.targets + lo * batch.target_pitch : nullptr;
      call.target_pitch = batch.target_pitch;
      if (!call.targets) return x;
    }
    call.count = hi - lo;
    call.scale = static_cast<Scalar>(scale);
    call.gradient = gradient;
    call.first = lo;
    if constexpr (!on_host<Device>) {
      call.table = table_.data();
      call.sums = memory_.sums();
      call.values = memory_.values();
    }
    s.sums += loss_(call);
    return x;
  }

  SKEIN_NOINLINE void step(State& s, const View& batch, long lo, long hi, double scale) {
    Activation* dy = s.set->gradient.data() + s.run.context.first * output_pitch;
    const Activation* x = forward_loss(s, batch, lo, hi, loss_gradient(s), scale);
    if constexpr (mixed) ops::convert<Device>(dy, loss_gradient(s), (hi - lo) * output_pitch);
    Root::backward(s.run, nn::ArenaOffsets{}, x, network_output(s, lo), dy, nullptr);
  }

  /// Where the device reads the loss scale itself, it is among its values.
  static double gradient_scale(const ExecutorCall& call) {
    if constexpr (Model::scales_loss && on_host<Device>) return call.scale * call.loss_scale;
    else return call.scale;
  }

  void whole(State& s, const Worker& w, const View& batch, const ExecutorCall& call, bool overlap) {
    const auto [lo, hi] = w.slice(batch.count);
    s.run.context.first = lo;
    s.run.context.total = batch.count;
    s.run.context.accumulate = call.accumulate;
    s.run.context.ready_hook = overlap ? &Executor::on_ready : nullptr;
    hook_self(s, overlap);
    step(s, batch, lo, hi, gradient_scale(call));
  }

  void clear_gradients(State& s) {
    for (const plan::Range& r : cleared_)
      Memory<Device>::clear(s.run.gradients + r.begin, static_cast<std::size_t>(r.end - r.begin) * sizeof(Scalar),
                            model_->where());
  }
  void prepare_blocks(State& s, long n) {
    const long count = (n + capacity_ - 1) / capacity_;
    for (long b = 0; b < count; ++b) {
      s.run.batch = n * (b + 1) / count - n * b / count;
      Root::prepare(s.run, nn::ArenaOffsets{});
    }
  }

  /// Each shard by one worker, whichever: its gradients and sums do not depend on that.
  void shards(State& s, const Worker& w, const View& batch, const ExecutorCall& call) {
    const plan::VirtualShards& v = options_.shards;
    const auto at = [&](int shard) { return static_cast<long>(plan::shard_begin(call.global_count, v.total, shard)); };
    const auto [lo, hi] = w.slice(v.count());
    for (int i = static_cast<int>(lo); i < static_cast<int>(hi); ++i) {
      Scalar* const g = s.run.gradients = gradients(i);
      Scalar* const tail = g + sizes.stored;
      s.sums = {};
      if (!call.accumulate) {
        clear_gradients(s);
        for (int k = 0; k < 3; ++k) tail[k] = 0;
      }
      blocks(s, std::pair<long, long>(at(v.begin + i) - at(v.begin), at(v.begin + i + 1) - at(v.begin)), batch, call);
      tail[0] += static_cast<Scalar>(s.sums.loss);
      tail[1] += static_cast<Scalar>(s.sums.weight);
      tail[2] += static_cast<Scalar>(s.sums.correct);
    }
  }
  /// Scalars [at, at + n) of a subtree's sum: the leaf's own, or in scratch.
  const Scalar* sum_tree(const plan::TreeNode& node, long at, long n, Scalar* scratch) {
    if (node.leaf()) return gradients(node.begin - options_.shards.begin) + at;
    const Scalar* left = sum_tree({node.begin, node.middle()}, at, n, scratch);
    const Scalar* right = sum_tree({node.middle(), node.end}, at, n, scratch + tree_block);
    for (long i = 0; i < n; ++i) scratch[i] = left[i] + right[i];
    return scratch;
  }

  void blocks(State& s, std::pair<long, long> slice, const View& batch, const ExecutorCall& call) {
    const long lo = slice.first, hi = slice.second;
    const long n = hi - lo, count = n > capacity_ ? (n + capacity_ - 1) / capacity_ : 1;  // even blocks; one, if empty
    s.run.context.first = 0;
    s.run.context.ready_hook = nullptr;
    for (long b = 0, from = lo, to; b < count; ++b, from = to) {
      to = b + 1 < count ? lo + n * (b + 1) / count : hi;
      s.run.context.total = to - from;
      s.run.context.accumulate = call.accumulate || b > 0;
      step(s, batch, from, to, gradient_scale(call));
    }
  }

  // ---- what is ready --------------------------------------------------------------------------------------------------

  // The context has one `hook` for statistics and ready; while a policy listens, both go through this object.
  void hook_self(State& s, bool overlap) {
    if (!overlap) return;
    s.run.context.hook = this;
    if (s.run.context.statistics_hook) s.run.context.statistics_hook = &Executor::on_statistics;
  }
  // All workers stand in a barrier: what is ready is begun now, so that every rank makes its calls in the same order.
  static void on_statistics(void* self, double* values, long n) {
    Executor& p = *static_cast<Executor*>(self);
    if (p.workers_->size() > 1) p.advance();
    p.hooks_.statistics(p.hooks_.object, values, n);
  }
  static void on_ready(void* self, const nn::Context<Scalar, Device>& context, long begin, long) {
    Executor& p = *static_cast<Executor*>(self);
    p.states_[static_cast<std::size_t>(context.worker.index)].progress.store(begin, std::memory_order_release);
    if (context.worker.index == 0) p.advance();
  }
  /// Worker 0: sums over workers what all of them have finished, and tells the policy.
  void advance() {
    long ready = 0;
    for (int w = 0; w < workers_->size(); ++w)
      ready = std::max(ready, states_[static_cast<std::size_t>(w)].progress.load(std::memory_order_acquire));
    if (ready < reported_ && ready <= sizes.stored) {
      if (reported_ > sizes.stored) write_tail();
      if (workers_->size() > 1)
        for (const plan::Range& r : summed_) add_partials(std::max(r.begin, ready), std::min(r.end, reported_));
      const long end = reported_;
      reported_ = ready;
      hooks_.ready(hooks_.object, ready, end);
    } else {
      hooks_.ready(hooks_.object, reported_, reported_);
    }
  }
  void forget_progress() {
    for (int w = 0; w < workers_->size(); ++w)
      states_[static_cast<std::size_t>(w)].progress.store(nothing_ready, std::memory_order_relaxed);
  }
  void write_tail() {
    Scalar* tail = gradients(0) + sizes.stored;
    if constexpr (on_host<Device>) {
      const nn::LossSums all = sums();
      tail[0] = static_cast<Scalar>(all.loss);
      tail[1] = static_cast<Scalar>(all.weight);
      tail[2] = static_cast<Scalar>(all.correct);
    } else {
      ops::write_sums<Device>(memory_.sums(), tail);
    }
  }
  void add_partials(long begin, long end) {
    if constexpr (on_host<Device>) {  // a device has one worker
      Scalar* to = gradients(0);
      for (int w = 1; w < workers_->size(); ++w) {
        const Scalar* from = gradients(w);
        for (long i = begin; i < end; ++i) to[i] += from[i];
      }
    }
  }

  Model* model_;
  Loss loss_;
  ExecutorOptions options_;
  nn::StepMemory<Device> memory_;
  [[no_unique_address]] nn::LossTable<Loss, Device> table_;
  std::unique_ptr<Workers> workers_;
  long capacity_;
  std::vector<Set> sets_;
  std::vector<Arena<Scalar, Device>> partial_, workspace_;
  Arena<Scalar, Device> outputs_, packed_weights_;
  nn::BatchOnDevice<Scalar, Device> batch_on_device_;
  [[no_unique_address]] std::conditional_t<mixed, Converted, Nothing> converted_;
  Arena<double> exchange_;
  std::unique_ptr<State[]> states_;
  std::vector<plan::Range> cleared_, summed_;  // see find_ranges
  std::vector<plan::TreeNode> subtrees_;       // of the virtual shards
  ExecutorHooks hooks_{};
  long reported_ = 0;
  bool reduced_ = false;
};

}  // namespace skein::inline SKEIN_ABI
