// SPDX-License-Identifier: Apache-2.0
// SlicePass: forward, loss and backward of one worker's samples [lo, hi) of a batch, whatever they are: its part of the whole
// batch (layer_wise.hpp), a block (depth_first.hpp), or its part of a micro-batch, whose backward comes later (a pipeline's
// stage: nn/stage_executor.hpp). Who calls it has set first, total and accumulate of the run's context.
#pragma once
#include <concepts>
#include <utility>

#include "../../device/batch_view.hpp"
#include "../loss/timed.hpp"
#include "../step_memory.hpp"
#include "executor_memory.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// The loss of a stage that is not the last.
struct NoLoss {};

/// What one worker does with its samples of a batch.
template <class Model, class Loss, class Memory_ = ExecutorMemory<Model>> class SlicePass {
 public:
  using Memory = Memory_;
  using State = typename Memory::State;
  using Scalar = typename Model::Scalar;
  using Activation = typename Model::Activation;
  using Device = typename Model::device;
  using View = BatchView<Scalar, Device>;
  static constexpr bool has_loss = !std::same_as<Loss, NoLoss>;
  static_assert((assert_timed<Loss, Device>(), true));
  /// Rows that the loss gets of a sample.
  static constexpr long rows = [] {
    if constexpr (has_loss) return rows_of_sample<Loss>(Memory::sizes.output);
    else return 1L;
  }();
  static constexpr long width = Memory::sizes.output.count() / rows;

  /// Both memories stay where they are.
  SlicePass(Memory& memory, StepMemory<Device>& step_memory, Loss loss)
      : step_memory_(&step_memory), loss_(std::move(loss)), table_(loss_, memory.model().where()),
        call_(memory.batch(), memory.model().where()) {}

  const Loss& loss() const { return loss_; }

  /// Forward and, where the batch has something to compare with, the loss; `gradient` (null: not wanted) gets that of the
  /// outputs, times `scale`. Returns the network's input. Not inlined: the tree of layers is compiled once, not for each order
  /// and phase. Of a stage the input is in the slot already where the batch has no samples.
  template <bool Stage = false>
  SKEIN_NOINLINE const Activation* forward_loss(State& s, const View& batch, long lo, long hi, Scalar* gradient, double scale) {
    s.run.batch = hi - lo;
    s.run.context.global_first = static_cast<std::uint64_t>((on_host<Device> ? batch.first : 0) + lo);  // else in values()
    Scalar* y = s.outputs + lo * Memory::output_pitch;
    const Activation* x =
        Stage && !tokens && !batch.x ? s.set->input.data() + s.run.context.first * pitch : input(s, batch, lo, hi);
    Activation* out = network_output(s, lo);
    const Activation* at = Root::forward(s.run, ArenaOffsets{}, x, out);
    if (at != out) ops::copy<Device>(out, at, (hi - lo) * Memory::output_pitch);
    lap(s, StepPart::forward);
    if constexpr (has_loss) {
      if constexpr (mixed) ops::convert<Device>(y, out, (hi - lo) * Memory::output_pitch);
      compare(s, batch, lo, hi, y, gradient, scale);
    }
    lap(s, StepPart::loss);
    return x;
  }

  SKEIN_NOINLINE void step(State& s, const View& batch, long lo, long hi, const PassCall& call) {
    Activation* dy = s.set->gradient.data() + s.run.context.first * Memory::output_pitch;
    const Activation* x = forward_loss(s, batch, lo, hi, loss_gradient(s), gradient_scale(call));
    if constexpr (mixed) ops::convert<Device>(dy, loss_gradient(s), (hi - lo) * Memory::output_pitch);
    s.run.input_gradient = false;
    Root::backward(s.run, ArenaOffsets{}, {x, network_output(s, lo), dy});
    lap(s, StepPart::backward);
  }

  // ---- the two halves of a step, of a micro-batch in a slot --------------------------------------------------------------

  /// Forward. With a loss, the gradient of the outputs is in the slot afterwards, while it trains. Returns the input.
  const Activation* forward(State& s, const View& batch, long lo, long hi, const PassCall& call) {
    const bool wanted = has_loss && s.run.context.training();
    const Activation* x = forward_loss<true>(s, batch, lo, hi, wanted ? loss_gradient(s) : nullptr, gradient_scale(call));
    if constexpr (mixed)
      if (wanted) ops::convert<Device>(gradient(s), loss_gradient(s), (hi - lo) * Memory::output_pitch);
    return x;
  }
  /// Backward from the slot's gradient of the outputs; that of the input, if it is wanted, is in the slot afterwards.
  SKEIN_NOINLINE void backward(State& s, const Activation* x, long lo, bool input_wanted) {
    Activation* dx = input_wanted ? s.set->input_gradient.data() + s.run.context.first * pitch : nullptr;
    s.run.input_gradient = dx != nullptr;
    const Activation* made = Root::backward(s.run, ArenaOffsets{}, {x, network_output(s, lo), gradient(s), dx});
    if (dx && made != dx) ops::copy<Device>(dx, made, s.run.batch * pitch);
  }
  /// (samples, output_pitch) of this worker: what backward begins with.
  static Activation* gradient(State& s) { return s.set->gradient.data() + s.run.context.first * Memory::output_pitch; }

 private:
  using Root = typename Memory::Root;
  static constexpr bool mixed = Memory::mixed, tokens = is_tokens<typename Model::input>;
  static constexpr long pitch = Memory::input_pitch, columns = static_cast<long>(Model::input::count);

  /// Gives the time since the last lap to `part` of the loss's clock: the first worker does, while it trains.
  void lap([[maybe_unused]] const State& s, [[maybe_unused]] StepPart part) const {
    if constexpr (is_timed<Loss>)
      if (s.run.context.worker.index == 0 && s.run.context.training()) loss_.clock().lap(part);
  }
  /// Where the device reads the loss scale itself, it is among its values.
  static double gradient_scale(const PassCall& call) {
    if constexpr (Model::scales_loss && on_host<Device>) return call.scale * call.loss_scale;
    else return call.scale;
  }
  /// This slice's input rows: the batch's own memory where its pitch and type are the arena's, else a copy. Tokens are beside
  /// them.
  const Activation* input(State& s, const View& batch, long lo, long hi) {
    if constexpr (tokens) {
      s.run.tokens = batch.tokens + lo * columns;
      return nullptr;
    } else {
      return numbers(s, batch, lo, hi);
    }
  }
  const Activation* numbers(State& s, const View& batch, long lo, long hi) {
    if constexpr (!mixed)
      if (batch.pitch == pitch) return batch.x + lo * pitch;
    Activation* to = s.set->input.data() + s.run.context.first * pitch;
    const Scalar* from = batch.x + lo * batch.pitch;
    if constexpr (mixed) ops::convert_rows<Device>(to, pitch, from, batch.pitch, hi - lo, columns);
    else ops::copy_rows<Device>(to, pitch, from, batch.pitch, hi - lo, columns);
    return to;
  }
  /// Where the network writes the outputs of a slice: what the loss reads, or what is converted to that.
  Activation* network_output(State& s, long lo) {
    if constexpr (mixed) return s.set->wide.output.data() + s.run.context.first * Memory::output_pitch;
    else return s.outputs + lo * Memory::output_pitch;
  }
  Scalar* loss_gradient(State& s) {
    if constexpr (mixed) return s.set->wide.gradient.data() + s.run.context.first * Memory::output_pitch;
    else return s.set->gradient.data() + s.run.context.first * Memory::output_pitch;
  }
  SKEIN_ALWAYS_INLINE void compare(State& s, const View& batch, long lo, long hi, const Scalar* y, Scalar* gradient,
                                   double scale) {
    LossCall<Scalar, Device> call;
    call.outputs = y;
    call.output_pitch = rows > 1 ? width : Memory::output_pitch;  // samples of several rows are dense
    call.width = width;
    if constexpr (Loss::target == TargetKind::label) {
      call.labels = batch.labels ? batch.labels + lo * rows : nullptr;
      if (!call.labels) return;  // predict: nothing to compare with
    } else {
      call.targets = batch.targets ? batch.target(lo) : nullptr;
      call.target_pitch = batch.target_pitch;
      if (!call.targets) return;
    }
    call.count = (hi - lo) * rows;
    call.scale = static_cast<Scalar>(scale);
    call.gradient = gradient;
    call.first = lo;
    if constexpr (rows > 1) call.labels_each = rows;
    if constexpr (!on_host<Device>) {
      call.table = table_.data();
      call.sums = step_memory_->sums();
      call.values = step_memory_->values();
    }
    s.sums += call_(loss_, call, lo);
  }

  StepMemory<Device>* step_memory_;
  Loss loss_;
  [[no_unique_address]] LossTable<Loss, Device> table_;
  [[no_unique_address]] LossCaller<Loss, Scalar, Device> call_;
};

}  // namespace skein::inline SKEIN_ABI::nn
