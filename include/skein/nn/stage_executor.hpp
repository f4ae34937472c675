// SPDX-License-Identifier: Apache-2.0
// StageExecutor: forward and backward of a part of a network, called task by task by whoever runs a pipeline. Several
// micro-batches are in flight, each in a slot of ExecutorMemory; a task is a SlicePass over one slot. Backward comes whole or in
// two halves, where the layers have them; weights of an older version may be saved for the micro-batches that have read them.
// Layer by layer; Executor is the whole network's in one call.
#pragma once
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "exec/slice_pass.hpp"
#include "exec/stage_run.hpp"
#include "exec/sum_workers.hpp"
#include "exec/weight_versions.hpp"
#include "stage.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Forward and backward of one stage of a pipeline, task by task, for several micro-batches in flight.
template <class Model, class Loss> class StageExecutor final
    : public AnyStage<typename Model::Scalar, typename Model::Activation, typename Model::device> {
 public:
  using Scalar = typename Model::Scalar;
  using Activation = typename Model::Activation;
  using Device = typename Model::device;
  using View = BatchView<Scalar, Device>;

  StageExecutor(Model& model, Loss loss) : model_(&model), loss_(std::move(loss)), step_memory_(model.where()) {}

  void reserve(Workers& workers, const StageOptions& options) override {
    workers_ = &workers;
    options_ = options;
    ExecutorOptions o;
    o.capacity = options.batch;
    o.execution = Execution::layer_wise;
    slots_.assign(static_cast<std::size_t>(options.slots), {});
    parts_.emplace(*model_, o, workers.size(), options, step_memory_, loss_);
    for (int i = 0; i < options.slots; ++i)
      for (int w = 0; w < workers.size(); ++w) {
        Run& r = parts_->memory.state(w, i).run;
        r.ordinal = options.ordinal;
        if (options.halves) r.deferred.reserve(static_cast<std::size_t>(Memory::sizes.layer_nodes));
      }
  }
  void prepare(long count) override {
    [[maybe_unused]] const auto here = step_memory_.enter();
    if (has_loss) prepare_loss<Device>();
    workers_->run([&](Worker& w) {
      Run& r = parts_->memory.state(w.index).run;
      const auto [lo, hi] = w.slice(count);
      r.context.worker = w;
      r.batch = hi - lo;
      Memory::Root::prepare(r, ArenaOffsets{});
    });
  }

  long input_pitch() const override { return Memory::input_pitch; }
  long output_pitch() const override { return Memory::output_pitch; }
  Activation* input(int slot) override { return state(slot).set->input.data(); }
  Activation* output(int slot) override {
    if constexpr (Memory::mixed) return state(slot).set->wide.output.data();
    else return state(slot).outputs;
  }
  Activation* gradient(int slot) override { return state(slot).set->gradient.data(); }
  Activation* input_gradient(int slot) override { return state(slot).set->input_gradient.data(); }
  const Scalar* outputs(int slot) override { return state(slot).outputs; }

  void forward(const StageCall& call, const View& batch) override {
    [[maybe_unused]] const auto here = step_memory_.enter();
    slots_[at(call.slot)] = {batch.count, call.version, batch.first, call};
    begin(call.slot);
    step_memory_.clear_sums();
    parts_->memory.begin_pass();
    workers_->run([&](Worker& w) { forward(w, call, batch); });
    if constexpr (has_loss && !on_host<Device>) slots_[at(call.slot)].sums = step_memory_.read_sums();
  }
  LossSums sums(int slot) const override {
    LossSums all = slots_[at(slot)].sums;
    for (int w = 0; w < workers_->size(); ++w) all += parts_->memory.state(w, slot).sums;
    return all;
  }
  void backward(int slot, bool accumulate) override { backward(slot, accumulate, false); }
  void backward_input(int slot, bool accumulate) override { backward(slot, accumulate, true); }
  void backward_parameters(int slot, bool accumulate) override {
    [[maybe_unused]] const auto here = step_memory_.enter();
    begin(slot);
    workers_->run([&](Worker& w) {
      Run& r = parts_->memory.state(w.index, slot).run;
      r.context.worker = w;
      r.context.accumulate = accumulate;
      r.run_deferred();
    });
  }
  void reduce_workers() override {
    if constexpr (on_host<Device>)
      if (workers_->size() > 1) workers_->run([&](Worker& w) { sum_workers(parts_->memory, w); });
  }
  void save_version(int version) override {
    [[maybe_unused]] const auto here = step_memory_.enter();
    parts_->memory.begin_pass();
    workers_->run([&](Worker& w) { refresh(w); });
    parts_->versions.save(version);
    for (int i = 0; i < options_.slots; ++i)
      if (slots_[at(i)].count >= 0 && !slots_[at(i)].version) {
        slots_[at(i)].version = version;
        for (int w = 0; w < workers_->size(); ++w) parts_->versions.select(parts_->memory.state(w, i).run, version);
      }
  }

  DeviceSpan<Scalar, Device> unguarded_parameters() override { return model_->weights().unguarded(); }
  void weights_changed() override { model_->weights().changed(); }
  DeviceSpan<Scalar, Device> gradients() override { return model_->gradient_arena(); }
  long bytes() const override { return static_cast<long>(parts_->memory.activation_bytes() + parts_->versions.bytes()); }

 private:
  using Run = StageRun<Scalar, Device, Activation>;
  using Memory = ExecutorMemory<Model, Run>;
  static constexpr bool has_loss = !std::same_as<Loss, NoLoss>;

  struct Parts {
    Parts(Model& model, const ExecutorOptions& o, int threads, const StageOptions& stage, StepMemory<Device>& step,
          const Loss& loss)
        : memory(model, o, threads, {.count = stage.slots, .edges = true}), pass(memory, step, loss),
          versions(memory, stage.versions) {}
    Memory memory;
    SlicePass<Model, Loss, Memory> pass;
    WeightVersions<Memory> versions;
  };
  struct Slot {
    long count = -1;               // -1: nothing has been here
    std::optional<int> version{};  // that it reads; none: the model's
    std::int64_t first = 0;
    StageCall call{};
    LossSums sums{};  // of a device
  };

  static std::size_t at(int slot) { return static_cast<std::size_t>(slot); }
  auto& state(int slot) { return parts_->memory.state(0, slot); }

  /// The numbers of the slot's micro-batch go to the device, which reads them in each of its passes.
  void begin([[maybe_unused]] int slot) {
    if constexpr (!on_host<Device>) {
      const Slot& s = slots_[at(slot)];
      step_memory_.begin(step_values(s.call, s.first));
      state(slot).run.context.values = step_memory_.values();
    }
  }
  /// Copies of the newest weights are made anew, whatever version the first slot reads.
  void refresh(const Worker& w) {
    auto& s = parts_->memory.state(w.index);
    if (s.packed_version == model_->version()) return;
    parts_->versions.select(s.run, {});
    parts_->memory.refresh(w, s);
    parts_->versions.select(s.run, slots_[0].version);
  }
  SKEIN_NOINLINE void forward(const Worker& w, const StageCall& call, const View& batch) {
    auto& s = parts_->memory.state(w.index, call.slot);
    Run& r = s.run;
    if (!call.version) refresh(w);
    parts_->versions.select(r, call.version);
    const auto [lo, hi] = w.slice(batch.count);
    r.context.worker = w;
    r.context.phase = call.phase;
    r.context.key = call.key;
    r.context.first = lo;
    r.context.total = batch.count;
    r.deferred.clear();
    s.sums = {};
    r.x = parts_->pass.forward(s, batch, lo, hi, {.scale = call.scale, .loss_scale = call.loss_scale});
  }
  void backward(int slot, bool accumulate, bool halves) {
    [[maybe_unused]] const auto here = step_memory_.enter();
    begin(slot);
    workers_->run([&](Worker& w) {
      auto& s = parts_->memory.state(w.index, slot);
      s.run.context.worker = w;
      s.run.context.accumulate = accumulate;
      s.run.halves = halves;
      s.run.top = parts_->pass.gradient(s);
      if (!accumulate) parts_->memory.clear_gradients(s);
      parts_->pass.backward(s, s.run.x, s.run.context.first, !options_.first);
    });
  }

  Model* model_;
  Loss loss_;
  StepMemory<Device> step_memory_;
  Workers* workers_ = nullptr;
  StageOptions options_{};
  std::vector<Slot> slots_;
  mutable std::optional<Parts> parts_;
};

}  // namespace skein::inline SKEIN_ABI::nn
