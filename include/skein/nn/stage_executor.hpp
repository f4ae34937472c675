// SPDX-License-Identifier: Apache-2.0
// StageExecutor: forward and backward of a part of a network, called task by task by whoever runs a pipeline. Several
// micro-batches are in flight, each in a slot of its own (what backward needs of it, its input, output and their gradients);
// backward comes whole or in two halves, where the layers have them; weights of an older version may be kept for the
// micro-batches that have read them. Layer by layer, on the host; Executor is the whole network's in one call.
#pragma once
#include <algorithm>
#include <memory>
#include <vector>

#include "../core/error.hpp"
#include "../core/workers.hpp"
#include "../device/batch.hpp"
#include "../ops/elementwise.hpp"
#include "activations.hpp"
#include "loss/loss.hpp"
#include "model.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// One forward of a stage.
struct StageCall {
  int slot = 0;
  Phase phase = Phase::training;
  double scale = 1;  ///< factor of the loss's gradient
  std::uint64_t key = 0;
  int kept = -1;  ///< the kept weights that it reads; -1: the model's
};

/// What a StageExecutor is made for.
struct StageOptions {
  long batch = 0;       ///< most samples of a micro-batch
  int slots = 1;        ///< micro-batches in flight
  int kept = 0;         ///< older versions of the weights
  bool halves = false;  ///< will backward come in two halves
  bool first = true;    ///< nobody wants the gradient of its input
  int ordinal = 0;      ///< layers before it, as they are executed
};

/// A stage whatever its network: what the interpreter of a schedule sees. Rows of arrays are a pitch apart.
template <class Scalar> class AnyStage {
 public:
  virtual ~AnyStage() = default;
  /// Makes all memory.
  virtual void reserve(Workers& workers, const StageOptions& options) = 0;
  virtual void prepare(long count) = 0;

  virtual long input_pitch() const = 0;
  virtual long output_pitch() const = 0;
  virtual Scalar* input(int slot) = 0;   ///< (batch, input_pitch), to be written before forward
  virtual Scalar* output(int slot) = 0;  ///< (batch, output_pitch), after forward; stays until the slot's next
  /// (batch, output_pitch) and room for gradient_tail scalars: to be written before backward (the last stage does it itself).
  virtual Scalar* gradient(int slot) = 0;
  virtual Scalar* input_gradient(int slot) = 0;  ///< (batch, input_pitch) and room likewise, after backward

  /// Of one micro-batch: its x is what the first stage reads (null elsewhere: input() is); the last compares with its labels or
  /// targets, if it has such.
  virtual void forward(const StageCall& call, const BatchView<Scalar>& batch) = 0;
  virtual LossSums sums(int slot) const = 0;  ///< of the last stage's forward
  /// `accumulate`: adds to the gradients that are there.
  virtual void backward(int slot, bool accumulate) = 0;
  virtual void backward_input(int slot, bool accumulate) = 0;
  virtual void backward_parameters(int slot, bool accumulate) = 0;
  /// All of the gradients are in gradients() afterwards.
  virtual void reduce_workers() = 0;
  /// Copies the weights into kept ones; the slots that have read them go on with the copy.
  virtual void keep(int kept) = 0;

  virtual DeviceSpan<Scalar> parameters() = 0;  ///< says that they change
  virtual DeviceSpan<Scalar> gradients() = 0;   ///< with the tail
  virtual long bytes() const = 0;               ///< of what grows with micro-batches and slots
};

/// The loss of a stage that is not the last.
struct NoLoss {};

/// What a run of a stage leaves for the second half of its backward.
template <class Scalar, class Device> struct StageRun : Run<Scalar, Device, Scalar> {
  using Half = void (*)(StageRun&, const ArenaOffsets&, const Scalar* x, const Scalar* y, const Scalar* dy);
  struct Deferred {
    Half half;
    ArenaOffsets at;
    const Scalar *x, *y, *dy;
    bool split;
  };
  std::vector<Deferred> deferred;
  const Scalar* top = nullptr;  // the gradient of the stage's output, which stays
  bool halves = false;

  /// A layer's dy must still be there for the second half: the layer keeps what it needs, or it is the stage's own.
  bool defers(const Scalar* dy, bool keeps) const { return halves && (keeps || dy == top); }
  void defer(Half half, const ArenaOffsets& at, const Scalar* x, const Scalar* y, const Scalar* dy) {
    deferred.push_back({half, at, x, y, dy, this->context.split});
  }
  void run_deferred() {
    const bool split = this->context.split;
    for (const Deferred& d : deferred) {
      this->context.split = d.split;
      d.half(*this, d.at, d.x, d.y, d.dy);
    }
    this->context.split = split;
    deferred.clear();
  }
};

/// Forward and backward of one stage of a pipeline, task by task, for several micro-batches in flight.
template <class Model, class Loss> class StageExecutor final : public AnyStage<typename Model::Scalar> {
 public:
  using Scalar = typename Model::Scalar;
  using Device = typename Model::device;
  using Input = typename Model::input;
  static_assert(
      on_host<Device> && !Model::precision::mixed,
      "a pipeline's stages run on the Cpu, with activations of the weights' type: give the model Cpu and float or double");
  static constexpr bool last = !std::same_as<Loss, NoLoss>;
  static constexpr MemoryRequirements sizes = analyze<typename Model::fused>(Input::extents);
  static constexpr long x_pitch = sample_pitch(Input::extents), y_pitch = sample_pitch(sizes.output),
                        width = sizes.output.count();

  StageExecutor(Model& model, Loss loss) : model_(&model), loss_(std::move(loss)) {}

  void reserve(Workers& workers, const StageOptions& options) override {
    workers_ = &workers;
    options_ = options;
    const int threads = workers.size();
    slots_.clear();
    partial_.clear();
    workspace_.clear();
    kept_.clear();
    for (int w = 1; w < threads; ++w) partial_.emplace_back(static_cast<std::size_t>(sizes.stored + gradient_tail));
    for (int w = 0; w < threads; ++w) workspace_.emplace_back(static_cast<std::size_t>(sizes.workspace + 16));
    packed_weights_ = Arena<Scalar>(static_cast<std::size_t>(sizes.packed_weights));
    packed_version_.assign(static_cast<std::size_t>(threads) * 16, 0);
    scratch_ = Arena<Scalar>(static_cast<std::size_t>(sizes.scratch * options.batch));
    exchange_ = Arena<double>(static_cast<std::size_t>(threads * exchange_size));
    for (int k = 0; k < options.kept; ++k) kept_.emplace_back();
    for (Kept& k : kept_)
      k.parameters = Arena<Scalar>(static_cast<std::size_t>(sizes.stored)),
      k.packed_weights = Arena<Scalar>(static_cast<std::size_t>(sizes.packed_weights));
    for (int i = 0; i < options.slots; ++i) slots_.push_back(std::make_unique<Slot>(options.batch, threads));
    for (auto& s : slots_)
      for (int w = 0; w < threads; ++w) make_run(*s, w);
    find_ranges();
  }
  void prepare(long count) override {
    workers_->run([&](Worker& w) {
      Run& r = slots_[0]->runs[static_cast<std::size_t>(w.index)];
      const auto [lo, hi] = w.slice(count);
      r.context.worker = w;
      r.batch = hi - lo;
      Root::prepare(r, start());
    });
  }

  long input_pitch() const override { return x_pitch; }
  long output_pitch() const override { return y_pitch; }
  Scalar* input(int slot) override { return at(slot).set.input.data(); }
  Scalar* output(int slot) override { return at(slot).output.data(); }
  Scalar* gradient(int slot) override { return at(slot).dy.data(); }
  Scalar* input_gradient(int slot) override { return at(slot).dx.data(); }

  void forward(const StageCall& call, const BatchView<Scalar>& batch) override {
    Slot& s = at(call.slot);
    s.count = batch.count;
    s.kept = call.kept;
    s.x = input(call.slot);
    if (batch.x && batch.pitch == x_pitch) s.x = batch.x;
    else if (batch.x)
      ops::copy_rows<Device>(s.set.input.data(), x_pitch, batch.x, batch.pitch, batch.count, static_cast<long>(Input::count));
    workers_->run([&](Worker& w) { forward(w, s, call, batch); });
  }
  LossSums sums(int slot) const override {
    LossSums all;
    for (const LossSums& s : slots_[static_cast<std::size_t>(slot)]->sums) all += s;
    return all;
  }
  void backward(int slot, bool accumulate) override { backward(at(slot), accumulate, false); }
  void backward_input(int slot, bool accumulate) override { backward(at(slot), accumulate, true); }
  void backward_parameters(int slot, bool accumulate) override {
    workers_->run([&](Worker& w) {
      Run& r = at(slot).runs[static_cast<std::size_t>(w.index)];
      r.context.worker = w;
      r.context.accumulate = accumulate;
      r.run_deferred();
    });
  }
  void reduce_workers() override {
    Scalar* to = model_->gradient_arena().data;
    for (const Arena<Scalar>& p : partial_)
      for (const plan::Range& r : summed_)
        for (long i = r.begin; i < r.end; ++i) to[i] += p.data()[i];
  }
  void keep(int kept) override {
    workers_->run([&](Worker& w) { refresh(w, slots_[0]->runs[static_cast<std::size_t>(w.index)]); });
    Kept& k = kept_[static_cast<std::size_t>(kept)];
    Memory<Device>::copy(k.parameters.data(), model_->parameters().data, static_cast<std::size_t>(sizes.stored) * sizeof(Scalar));
    if (sizes.packed_weights > 0)
      Memory<Device>::copy(k.packed_weights.data(), packed_weights_.data(),
                           static_cast<std::size_t>(sizes.packed_weights) * sizeof(Scalar));
    for (auto& s : slots_)
      if (s->count >= 0 && s->kept < 0) {
        s->kept = kept;
        for (Run& r : s->runs) point(r, kept);
      }
  }

  DeviceSpan<Scalar> parameters() override {
    model_->weights().changed();  // or is about to be: between two passes
    return model_->weights().unguarded();
  }
  DeviceSpan<Scalar> gradients() override { return model_->gradient_arena(); }
  long bytes() const override {
    std::size_t n =
        (scratch_.size() + kept_.size() * static_cast<std::size_t>(sizes.stored + sizes.packed_weights)) * sizeof(Scalar);
    for (auto& s : slots_) n += s->set.bytes() + (s->output.size() + s->dy.size() + s->dx.size()) * sizeof(Scalar);
    return static_cast<long>(n);
  }

 private:
  using Root = Node<typename Model::fused, Input>;
  using Run = StageRun<Scalar, Device>;
  static constexpr long exchange_size = 4096;
  static constexpr MemoryRequirements without_scratch() {  // one is enough: nothing stays there
    MemoryRequirements s = sizes;
    s.scratch = 0;
    return s;
  }
  struct Slot {
    Slot(long batch, int threads)
        : set({without_scratch(), sizes.backward_scratch, x_pitch, 0}, batch, Device{}),
          output(static_cast<std::size_t>(batch * y_pitch)), dy(static_cast<std::size_t>(batch * y_pitch + gradient_tail)),
          dx(static_cast<std::size_t>(batch * x_pitch + gradient_tail)), runs(static_cast<std::size_t>(threads)),
          sums(static_cast<std::size_t>(threads)) {}
    Activations<Scalar, Scalar, Device> set;
    Arena<Scalar> output, dy, dx;
    std::vector<Run> runs;
    std::vector<LossSums> sums;
    const Scalar* x = nullptr;
    long count = -1;  // -1: nothing has been here
    int kept = -1;
  };
  struct Kept {
    Arena<Scalar> parameters, packed_weights;
  };

  Slot& at(int slot) { return *slots_[static_cast<std::size_t>(slot)]; }
  ArenaOffsets start() const {
    ArenaOffsets a;
    a.ordinal = options_.ordinal;
    return a;
  }

  void make_run(Slot& s, int w) {
    Run& r = s.runs[static_cast<std::size_t>(w)];
    r.gradients = w == 0 ? model_->gradient_arena().data : partial_[static_cast<std::size_t>(w - 1)].data();
    r.split_gradients = model_->gradient_arena().data;
    r.buffers = model_->buffers().data;
    r.batch_statistics = s.set.batch_statistics.data();
    r.kept_activations = s.set.kept_activations.data();
    r.saved_for_backward = s.set.saved_for_backward.data();
    r.backward_scratch = r.saved_for_backward + sizes.saved_for_backward * options_.batch;
    r.saved_bytes = s.set.saved_bytes.data();
    r.scratch = scratch_.data();
    r.workspace = workspace_[static_cast<std::size_t>(w)].data();
    r.capacity = options_.batch;
    r.context.exchange = exchange_.data();
    r.context.exchange_size = exchange_size;
    r.context.split = workers_->size() > 1;
    r.context.math = Model::precision::math;
    r.context.worker.count = workers_->size();
    if (options_.halves) r.deferred.reserve(static_cast<std::size_t>(sizes.operations));
    point(r, -1);
  }
  void point(Run& r, int kept) {
    r.parameters = kept < 0 ? model_->parameters().data : kept_[static_cast<std::size_t>(kept)].parameters.data();
    r.packed_weights = kept < 0 ? packed_weights_.data() : kept_[static_cast<std::size_t>(kept)].packed_weights.data();
  }
  void find_ranges() {
    cleared_.clear();
    summed_.clear();
    const bool divides = workers_->size() > 1;
    Root::leaves(ArenaOffsets{}, divides, [&](const LayerInfo& info, long offset, bool split) {
      const long n = info.stored_parameters();
      if (n == 0) return;
      if (!info.overwrites_gradients) cleared_.push_back({offset, offset + n});
      if (!split) summed_.push_back({offset, offset + n});
    });
  }

  void refresh(const Worker& w, Run& r) {
    std::uint64_t& mine = packed_version_[static_cast<std::size_t>(w.index) * 16];
    if (mine == model_->version()) return;
    model_->weights().assert_at_rest();
    if constexpr (sizes.packed_weights > 0) {
      r.context.worker = w;
      Scalar* const packed_weights = std::exchange(r.packed_weights, packed_weights_.data());
      const Scalar* const parameters = std::exchange(r.parameters, model_->parameters().data);
      Root::pack_weights(r, start());
      r.packed_weights = packed_weights;
      r.parameters = parameters;
      w.barrier();
    }
    mine = model_->version();
  }

  SKEIN_NOINLINE void forward(const Worker& w, Slot& s, const StageCall& call, const BatchView<Scalar>& batch) {
    Run& r = s.runs[static_cast<std::size_t>(w.index)];
    point(r, call.kept);
    if (call.kept < 0) refresh(w, r);
    const auto [lo, hi] = w.slice(batch.count);
    r.batch = hi - lo;
    r.context.worker = w;
    r.context.phase = call.phase;
    r.context.key = call.key;
    r.context.first = lo;
    r.context.total = batch.count;
    r.context.global_first = static_cast<std::uint64_t>(batch.first + lo);
    r.deferred.clear();
    Scalar* y = s.output.data() + lo * y_pitch;
    const Scalar* out = Root::forward(r, start(), s.x + lo * x_pitch, y);
    if (out != y) ops::copy<Device>(y, out, (hi - lo) * y_pitch);
    if constexpr (last) {
      s.sums[static_cast<std::size_t>(w.index)] = {};
      LossCall<Scalar, Device> l;
      l.outputs = y;
      l.output_pitch = y_pitch;
      l.width = width;
      if constexpr (Loss::target == TargetKind::label) {
        if (!batch.labels) return;
        l.labels = batch.labels + lo;
      } else {
        if (!batch.targets) return;
        l.targets = batch.targets + lo * batch.target_pitch;
        l.target_pitch = batch.target_pitch;
      }
      l.count = hi - lo;
      l.scale = static_cast<Scalar>(call.scale);
      l.gradient = call.phase == Phase::training ? s.dy.data() + lo * y_pitch : nullptr;
      l.first = lo;
      s.sums[static_cast<std::size_t>(w.index)] = loss_(l);
    }
  }
  void backward(Slot& s, bool accumulate, bool halves) {
    workers_->run([&](Worker& w) { backward(w, s, accumulate, halves); });
  }
  SKEIN_NOINLINE void backward(const Worker& w, Slot& s, bool accumulate, bool halves) {
    Run& r = s.runs[static_cast<std::size_t>(w.index)];
    const long lo = r.context.first;
    r.context.worker = w;
    r.context.accumulate = accumulate;
    r.halves = halves;
    if (!accumulate)
      for (const plan::Range& c : cleared_)
        Memory<Device>::clear(r.gradients + c.begin, static_cast<std::size_t>(c.end - c.begin) * sizeof(Scalar));
    const Scalar* dy = s.dy.data() + lo * y_pitch;
    r.top = dy;
    Scalar* dx = options_.first ? nullptr : s.dx.data() + lo * x_pitch;
    const Scalar* made = Root::backward(r, start(), s.x + lo * x_pitch, s.output.data() + lo * y_pitch, dy, dx);
    if (dx && made != dx) ops::copy<Device>(dx, made, r.batch * x_pitch);
  }

  Model* model_;
  Loss loss_;
  Workers* workers_ = nullptr;
  StageOptions options_{};
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Arena<Scalar>> partial_, workspace_;
  std::vector<Kept> kept_;
  Arena<Scalar> packed_weights_, scratch_;
  Arena<double> exchange_;
  std::vector<std::uint64_t> packed_version_;  // a worker's, a cache line or more apart
  std::vector<plan::Range> cleared_, summed_;
};

}  // namespace skein::inline SKEIN_ABI::nn
