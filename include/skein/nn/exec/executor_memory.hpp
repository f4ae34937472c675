// SPDX-License-Identifier: Apache-2.0
// ExecutorMemory: all that an executor remembers of a model, made once for the largest batch: activations, the workers'
// gradients, scratch, copies of the weights, and what each worker's run points to. What backward needs of a micro-batch is in its
// slot: a whole network has one, a pipeline's stage as many as its schedule has in flight. Nothing here depends on a loss or on
// the order of the work.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../../core/hash.hpp"
#include "../../core/workers.hpp"
#include "../../ops/elementwise.hpp"
#include "../activations.hpp"
#include "../executor_options.hpp"
#include "../loss/loss.hpp"
#include "../model.hpp"
#include "gradient_arrays.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Micro-batches between their forward and their backward.
struct MicroBatchSlots {
  int count = 1;
  bool edges = false;  ///< each has the gradient of its input too, and room behind its gradients: of a pipeline's stage
};

/// All memory of an executor, on the model's device. Run_: what a worker's pass is made of; one that derives from nn::Run adds to
/// it.
template <class Model, class Run_ = nn::Run<typename Model::Scalar, typename Model::device, typename Model::Activation>>
class ExecutorMemory {
 public:
  using Scalar = typename Model::Scalar;
  using Activation = typename Model::Activation;
  using Device = typename Model::device;
  using Input = typename Model::input;
  using Root = Node<typename Model::fused, Input>;
  using Run = Run_;
  using Set = Activations<Scalar, Activation, Device>;
  static constexpr MemoryRequirements sizes = with_room(analyze<typename Model::fused>(Input::extents));
  static constexpr long input_pitch = sample_pitch(Input::extents), output_pitch = sample_pitch(sizes.output);
  static constexpr bool mixed = Model::precision::mixed;  ///< activations have a type of their own

  /// What one worker computes with, of one micro-batch.
  struct alignas(64) State {
    Run run{};
    Set* set = nullptr;
    Scalar* outputs = nullptr;  ///< (batch, output_pitch), of all workers
    LossSums sums{};            ///< of its samples, in the last call or accumulated calls
    LossSums of_other{};        ///< those of training while it evaluates, and the other way round
    bool evaluates = false;
    std::uint64_t packed_version = 0;
    long continues = 0;  ///< samples of its last call, whose states are still there; 0: none

    void turn_to(bool evaluation) {
      if (evaluates != evaluation) std::swap(sums, of_other), evaluates = evaluation;
    }
  };

  /// `options` are complete (resolve_options).
  ExecutorMemory(Model& model, const ExecutorOptions& options, int threads, const MicroBatchSlots& slots = {})
      : model_(&model), weights_(&model.weights()), threads_(threads), depth_first_(options.execution == Execution::depth_first),
        capacity_(depth_first_ ? options.block : options.capacity) {
    const Device where = model.where();
    stacked_ = !mixed && !slots.edges && slots.count == 1 && !sizes.carries_state;
    make_sets(depth_first_ ? threads : slots.count, slots.edges, where);
    const long unwritten = find_ranges(options.first_trained);
    const int arrays = !options.training ? 0 : options.shards ? options.shards.count() : threads;
    gradients_ = GradientArrays<Model>(model, arrays, unwritten, options.first_trained);
    for (int w = 0; w < threads; ++w) workspace_.emplace_back(static_cast<std::size_t>(sizes.workspace + 16), where);
    const long outputs = options.capacity * output_pitch, arrays_of_outputs = mixed ? 1 : slots.count;  // else the network's own
    outputs_ = Arena<Scalar, Device>(static_cast<std::size_t>(outputs * arrays_of_outputs), where);
    copies_ = weights_->copies_of(&program_of_copies, static_cast<std::size_t>(sizes.packed_weights), converted_scalars);
    packer_ = copies_->join();
    if constexpr (mixed) make_converted(where);
    exchange_ = Arena<double>(static_cast<std::size_t>(threads * exchange_size));
    states_ = std::make_unique<State[]>(static_cast<std::size_t>(threads * slots.count));
    for (int slot = 0; slot < slots.count; ++slot)
      for (int w = 0; w < threads; ++w) {
        state(w, slot).outputs = outputs_.data() + (mixed ? 0 : slot * outputs);
        make_run(state(w, slot), w, depth_first_ ? w : slot, options.shards ? 0 : w);
        state(w, slot).run.first_trained = options.first_trained;
      }
  }

  Model& model() const { return *model_; }
  int threads() const { return threads_; }
  /// Samples that the activations have room for: a block of each worker, or the rank's batch.
  long capacity() const { return capacity_; }
  bool depth_first() const { return depth_first_; }
  State& state(int worker) { return states_[static_cast<std::size_t>(worker)]; }
  const State& state(int worker) const { return states_[static_cast<std::size_t>(worker)]; }
  State& state(int worker, int slot) { return states_[static_cast<std::size_t>(slot * threads_ + worker)]; }
  /// Most samples of a batch, over all slots.
  long batch() const { return static_cast<long>(outputs_.size()) / output_pitch; }
  /// (batch, output_pitch)
  Scalar* outputs() { return outputs_.data(); }
  const Scalar* outputs() const { return outputs_.data(); }
  /// Array i, with its tail: the workers' (0 is the model's own), or those of this rank's virtual shards. Of a training alone.
  Scalar* gradients(int i) const { return gradients_.array(i); }
  GradientArrays<Model>& gradient_arrays() { return gradients_; }
  /// Ranges of the arena whose gradient is the sum over workers; elsewhere worker 0's alone is whole.
  const std::vector<plan::Range>& summed_ranges() const { return summed_; }

  /// A worker's gradients, where layers do not overwrite them.
  void clear_gradients(State& s) {
    for (const plan::Range& r : cleared_)
      Memory<Device>::clear(s.run.gradients + r.begin, static_cast<std::size_t>(r.end - r.begin) * sizeof(Scalar),
                            model_->where());
  }

  /// Before the workers begin a pass: all of them see the weights of one version.
  void begin_pass() { version_ = weights_->version(); }
  /// Every worker: copies that layers derive of the weights are made anew where the weights have changed.
  void refresh(const Worker& w, State& s) {
    const std::uint64_t version = version_;
    if (s.packed_version == version) {
      if constexpr (checks_copies)
        if (w.index == 0 && copies_->made_of() != hash_of_weights()) refuse_stale_copies();
      return;
    }
    weights_->assert_at_rest();
    if constexpr (sizes.packed_weights > 0 || conversion.reads_weights)
      if (!on_host<Device> || copies_->begin(version, packer_)) {
        make_copies(w, s);
        if constexpr (checks_copies)
          if (w.index == 0) copies_->made_of(hash_of_weights());
        w.barrier();
        copies_->end(version);
      }
    s.packed_version = version;
  }
  /// After an exception of a worker: copies that were being made are nobody's.
  void abandon_copies() { copies_->abandon(packer_); }
  /// Where the copies are: executors that share them have one address.
  const void* copies() const { return copies_.get(); }
  /// Where a step is captured, copies of the weights are part of every replay, unless an accumulation has made them.
  void forget_packed(State& s, bool accumulates) const {
    if constexpr (!on_host<Device>)
      if (conversion.reads_weights || !accumulates) s.packed_version = 0;
  }

  /// Bytes of the arenas that grow with the batch: activations, their gradients, what layers keep of them.
  std::size_t activation_bytes() const {
    std::size_t n = outputs_.size() * sizeof(Scalar);
    for (const Set& s : sets_) n += s.bytes();
    return n;
  }
  /// All but what the device's libraries have.
  MemoryPlan plan() const {
    MemoryPlan m;
    m.parameters = static_cast<std::size_t>(sizes.stored) * sizeof(Scalar);
    m.gradients = gradients_.bytes();
    m.buffers = static_cast<std::size_t>(sizes.buffers) * sizeof(Scalar);
    m.packed_weights = copies_->bytes();
    m.activations = activation_bytes();
    for (const auto& w : workspace_) m.workspace += w.size() * sizeof(Scalar);
    return m;
  }

 private:
  static constexpr ConversionMemory find_conversion() {
    if constexpr (mixed) return Root::template conversion<Run>();
    else return {};
  }
  static constexpr ConversionMemory conversion = find_conversion();
  static constexpr long backward_scratch = !mixed || conversion.passes ? sizes.backward_scratch : 0;
  static constexpr std::size_t converted_scalars =
      conversion.reads_weights
          ? (static_cast<std::size_t>(sizes.stored) * sizeof(Activation) + sizeof(Scalar) - 1) / sizeof(Scalar)
          : 0;
  static constexpr char program_of_copies = 0;  // its address: models of one type pack alike
  static constexpr long exchange_size = 4096;   // doubles a worker: sums of a normalisation layer

  struct Converted {
    std::vector<Arena<Scalar, Device>> conversion;  // a worker each
  };
  struct Nothing {};

  /// In a debug build weights that changed while nobody had a lease are found by their hash.
  static constexpr bool checks_copies =
      SKEIN_CHECKED && on_host<Device> && (sizes.packed_weights > 0 || conversion.reads_weights);
  std::uint64_t hash_of_weights() const {
    const auto weights = weights_->read();
    return hash_bytes(weights.data, weights.size * sizeof(Scalar));
  }
  [[noreturn]] static void refuse_stale_copies() {
    throw ArgumentError(
        "the model's weights changed while nobody had a lease, so that the copies that kernels read are stale: a span or a "
        "reference was kept after its lease had ended. Write under `auto weights = model.modify();`, and let it end before the "
        "pass");
  }

  /// This worker's part.
  void make_copies(const Worker& w, State& s) {
    if constexpr (conversion.reads_weights) {
      const auto [lo, hi] = w.slice(sizes.stored, 32);
      ops::convert<Device>(converted_weights() + lo, s.run.parameters + lo, hi - lo);
    }
    if constexpr (sizes.packed_weights > 0) {
      s.run.context.worker = w;
      Root::pack_weights(s.run, ArenaOffsets{});
    }
  }
  /// The parameters, for layers that compute in the activations' type.
  Activation* converted_weights() const { return reinterpret_cast<Activation*>(copies_->converted()); }
  void make_converted(Device where) requires mixed {
    const long slice = depth_first_ ? capacity_ : (capacity_ + threads_ - 1) / threads_;
    for (int w = 0; w < threads_; ++w)
      converted_.conversion.emplace_back(static_cast<std::size_t>(conversion.total(slice)), where);
  }
  /// Scratch memory is one array for all slots: nothing stays there.
  void make_sets(int count, bool edges, Device where) {
    ActivationSizes s{sizes, backward_scratch, input_pitch, output_pitch};
    s.stacked = stacked_;
    if (edges) s.tail_room = gradient_tail * static_cast<long>(sizeof(Scalar) / sizeof(Activation));
    for (int i = 0; i < count; ++i) {
      if (i > 0 && !depth_first_) s.network.scratch = s.network.whole_gradients = 0, s.network.again = {};
      sets_.emplace_back(s, capacity_, where);
    }
  }
  void make_run(State& s, int w, int set, int gradients_of) {
    s.set = &sets_[static_cast<std::size_t>(set)];
    Run& r = s.run;
    r.parameters = model_->parameters().data;
    if (gradients_.count() > 0) {
      r.gradients = gradients(gradients_of);
      r.split_gradients = gradients(0);
    }
    r.buffers = model_->buffers().data;
    r.packed_weights = copies_->packed();
    r.batch_statistics = s.set->batch_statistics.data();
    r.kept_activations = s.set->kept_activations.data();
    r.saved_for_backward = s.set->saved_for_backward.data();
    const long saved = stacked_ ? 0 : sizes.saved_for_backward;
    r.backward_scratch = r.saved_for_backward + saved * capacity_;
    r.saved_bytes = s.set->saved_bytes.data();
    Set& passing = depth_first_ ? *s.set : sets_[0];  // what no micro-batch leaves for later
    r.again = {passing.kept_activations.data() + sizes.kept_activations * capacity_,
               passing.saved_for_backward.data() + (saved + backward_scratch) * capacity_,
               passing.saved_bytes.data() + sizes.saved_bytes * capacity_, !depth_first_};
    r.scratch = passing.scratch.data();
    r.scratch_width = stacked_ ? sizes.stacked : sizes.scratch;
    r.whole_gradients = r.scratch + r.scratch_width * capacity_;
    if constexpr (!mixed)
      if (stacked_) r.saved_for_backward = r.scratch, r.stacked = sizes.stacked;
    r.workspace = workspace_[static_cast<std::size_t>(w)].data();
    if constexpr (mixed) {
      r.conversion = converted_.conversion[static_cast<std::size_t>(w)].data();
      r.weights = converted_weights();
    }
    r.capacity = capacity_;
    r.context.exchange = exchange_.data();
    r.context.exchange_size = exchange_size;
    r.context.split = divides_gradients();
    r.context.math = Model::precision::math;
    r.context.worker.count = threads_;
  }
  /// Layers that divide a gradient among the workers read the samples of all: not where each converts its own.
  bool divides_gradients() const { return !mixed && !depth_first_ && threads_ > 1; }

  /// Returns where the last layer ends that is frozen, from the first on.
  long find_ranges(long first_trained) {
    long unwritten = 0;
    auto append = [](std::vector<plan::Range>& to, plan::Range r) {
      if (!to.empty() && to.back().end == r.begin) to.back().end = r.end;
      else to.push_back(r);
    };
    Root::leaves(ArenaOffsets{}, divides_gradients(), [&](const LayerInfo& info, long offset, bool split) {
      const long n = info.stored_parameters();
      if (n == 0) return;
      if (offset + n <= first_trained) return void(unwritten = offset + n);
      if (!info.overwrites_gradients) append(cleared_, {offset, offset + n});
      if (!split) append(summed_, {offset, offset + n});
    });
    return unwritten;
  }

  Model* model_;
  Weights<Scalar, Device>* weights_;
  std::uint64_t version_ = 0;  ///< of the weights in this pass
  int threads_;
  bool depth_first_;
  bool stacked_ = false;  // what layers save and scratch share memory: nothing stays there from one pass to the next
  long capacity_;
  std::vector<Set> sets_;
  std::vector<Arena<Scalar, Device>> workspace_;
  GradientArrays<Model> gradients_;
  Arena<Scalar, Device> outputs_;
  std::shared_ptr<PackedWeights<Scalar, Device>> copies_;
  std::uint64_t packer_ = 0;  // its number among those that share the copies
  [[no_unique_address]] std::conditional_t<mixed, Converted, Nothing> converted_;
  Arena<double> exchange_;
  std::unique_ptr<State[]> states_;
  std::vector<plan::Range> cleared_, summed_;  // see find_ranges
};

}  // namespace skein::inline SKEIN_ABI::nn
