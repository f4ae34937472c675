// SPDX-License-Identifier: Apache-2.0
// Runs the lines of a pipeline's program (plan/pipeline_program.hpp) on what the process holds, in their order and in no other:
// forward, backward, update, and the messages between them. Gradients flow back with the sums of their micro-batch behind them,
// so that every stage knows the batch's loss and divisor without a message of its own.
#pragma once
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../../comm/tags.hpp"
#include "../../nn/batch_on_device.hpp"
#include "checked_program.hpp"
#include "pipeline_call.hpp"
#include "pipeline_update.hpp"

namespace skein::inline SKEIN_ABI::parallel::detail {

template <class Model, class Loss, class Optimizer> class PipelineRun {
 public:
  using LocalStages = PipelineLocalStages<Model, Optimizer>;
  using Stage = typename LocalStages::Stage;
  using Scalar = typename Model::Scalar;
  using Activation = typename Model::Activation;
  using Device = typename Model::device;
  using View = BatchView<Scalar, Device>;
  using Sums = nn::LossSums;
  using Program = plan::PipelineProgram;
  using Line = plan::PipelineLine;
  static constexpr long Width = Model::output_extents.count(), OutputPitch = sample_pitch(Model::output_extents);

  PipelineRun(Model& model, const Loss& loss, const Optimizer& optimizer, std::shared_ptr<PipelineTeam> team)
      : local_stages(model, loss, optimizer, std::move(team)), updates(local_stages),
        batch_on_device_(model.where(), nn::batch_rows<Model, Loss>()) {}
  PipelineRun(const PipelineRun&) = delete;
  PipelineRun& operator=(const PipelineRun&) = delete;

  // ---- programs and memory -------------------------------------------------------------------------------------------

  /// Where it throws, nothing is reserved: the next call makes all of it. Gradients that wait for their update stay.
  void reserve(long batch, int threads, Denormals denormals) {
    if (!on_host<Device>) threads = 1;
    const bool same = workers_ && workers_->size() == threads && workers_->denormals() == denormals;
    if (reserved_ && same && capacity_ >= batch) return;
    capacity_ = std::max(capacity(), batch);
    give_up_memory();
    if (!same) workers_ = std::make_unique<Workers>(threads, denormals);
    outputs_ = Arena<Scalar, Device>(static_cast<std::size_t>(capacity_ * OutputPitch), local_stages.model->where());
    for (Stage& local : local_stages.stages) local.slots = local.versions = 0;
    programs_.clear();
    make_memory();
    prepare(capacity_);
    reserved_ = true;
  }
  bool reserved() const { return reserved_; }
  long capacity() const { return reserved_ ? capacity_ : 0; }

  /// Programs and primitives for batches of so many samples.
  void prepare(long batch) {
    const long size = micro_size(batch * local_stages.team->options.replicas);
    const int n = micros(batch, size);
    (void)program(n, false);
    (void)program(n, true);
    for (Stage& local : local_stages.stages) {
      local.executor->prepare(std::min(size, batch));
      if (batch % size > 0) local.executor->prepare(batch % size);
    }
  }
  /// The lines for so many micro-batches; memory grows where they want more slots. `together`: all processes ask for them.
  const Program& program(int n, bool forward_only, bool together = true) {
    PipelineTeam& team = *local_stages.team;
    for (const auto& p : programs_)
      if (p.first == forward_only && p.second->micros == n && (!together || team.is_compared(n))) return *p.second;
    auto made = std::make_unique<Program>(
        checked_program(team, team.schedule(n, together), Model::stages, n, forward_only, comm::tags::tied_parameters));
    const Program& p = *made;
    const bool more = local_stages.grow(p) || (p.halves && !halves_);
    halves_ = halves_ || p.halves;
    if (more) make_memory();
    micro_sums_.reserve(at(n));
    micro_all_.reserve(at(n));
    local_stages.policy_state.events.reserve(p.lines.size());
    programs_.emplace_back(forward_only, std::move(made));  // it has its memory
    return p;
  }

  /// Samples of a micro-batch, for a batch of so many over all pipelines.
  long micro_size(long global_count) const { return local_stages.team->micro_size(global_count); }
  static int micros(long count, long size) { return static_cast<int>(std::max(1L, (count + size - 1) / size)); }
  static double expected_batch_weight(long samples) { return nn::expected_weight<Loss>(Model::output_extents, samples); }

  // ---- the interpreter -----------------------------------------------------------------------------------------------

  void run(const Program& p, const BatchView<Scalar>& given, const PipelineCall& call) {
    const MessagesOfStep messages(link());
    const BatchView<Scalar> own = local_stages.team->own_part(given);
    const View& batch = batch_on_device_(own);
    micro_sums_.assign(at(p.micros), {});
    micro_all_.assign(at(p.micros), {});
    local_stages.policy_state.events.clear();
    for (Stage& local : local_stages.stages) local.fresh = local.fresh_parameters = !call.accumulate;
    bool ready = false;  // gradients have been made those of the step
    for (const Line& line : p.lines) {
      Stage& local = local_stages.of(line.step.stage);
      if (line.asks) ask(p, line, batch.count, call);
      if (line.ahead >= 0) ask(p, p.lines[at(line.ahead)], batch.count, call);
      PipelineEvent event{line.step, 0, 0};
      switch (line.step.task) {
        case plan::Task::forward:
          forward(p, local, line, batch, call, event);
          break;
        case plan::Task::backward:
        case plan::Task::input_gradient:
          backward(p, local, line, samples(line, batch.count, call), event);
          break;
        case plan::Task::weight_gradient:
          event.begin = local_stages.clock();
          local.executor->backward_parameters(line.slot, !std::exchange(local.fresh_parameters, !p.synchronous));
          ends(event);
          break;
        case plan::Task::update:
          event.begin = local_stages.clock();
          if (call.update) update(p, local, line, call, ready);
          ends(event);
          break;
      }
      local_stages.policy_state.events.push_back(event);
      if (local_stages.team->processes > 1) link().progress();
    }
    for (Stage& local : local_stages.stages)
      for (int s = 0; s < local.slots; ++s)
        for (SlotMessage kind : {SlotMessage::output, SlotMessage::gradient_out}) local_stages.wait(local.request(s, kind));
  }

  // What the last run has left. Sums of micro-batches: of this pipeline; and of all, as PipeDream's updates learn them.
  const std::vector<Sums>& micro_sums() const { return micro_sums_; }
  const std::vector<Sums>& micro_sums_of_all() const { return micro_all_; }
  const Scalar* outputs() const { return outputs_.data(); }
  /// All processes of the pipeline: the last stage's outputs, of so many samples, come to all.
  void broadcast_outputs(long count) {
    HostSide<Scalar, Device> host(outputs_.data(), static_cast<std::size_t>(count * OutputPitch), local_stages.model->where());
    host.read();
    link().broadcast(host.data(), host.size() * sizeof(Scalar), local_stages.team->process_of(Model::stages - 1));
    host.write();
  }

  LocalStages local_stages;
  PipelineUpdate<Model, Optimizer> updates;

 private:
  static constexpr long tail_bytes = 3 * sizeof(double);
  static_assert(tail_bytes <= gradient_tail * static_cast<long>(sizeof(Activation)));

  PipelineLink& link() const { return *local_stages.team->pipeline_link; }
  static std::size_t at(long i) { return static_cast<std::size_t>(i); }
  static std::size_t edge_bytes(long n) { return at(n) * sizeof(Activation); }
  static int tag(int stage, bool back, int micro, const Program& p) {
    return comm::tags::micro_batches + (2 * stage + back) * p.micros + micro;
  }
  static long samples(const Line& line, long count, const PipelineCall& call) {
    return std::clamp(count - line.step.micro * call.size, 0L, call.size);
  }

  /// The sums of this pipeline's batch, with those of the batches before it that are accumulated.
  Sums batch_sums(const PipelineCall& call) const {
    Sums sums = call.carried;
    for (const Sums& s : micro_sums_) sums += s;
    return sums;
  }
  /// Nothing is reserved any more. Gradients that wait for their update are first added up in the models' own arrays, since the
  /// workers' go with the memory. Returns whether there was any.
  bool give_up_memory() {
    if (!std::exchange(reserved_, false)) return false;
    for (Stage& local : local_stages.stages) local.executor->reduce_workers();
    return true;
  }
  /// Where it throws, stages have memory for other numbers of slots, or none, and nothing is reserved.
  void make_memory() {
    const PipelineOptions& o = local_stages.team->options;
    const bool before = give_up_memory();
    local_stages.reserve(*workers_, o.micro_batch > 0 ? std::min(o.micro_batch, capacity_) : micro_size(capacity_ * o.replicas),
                         halves_);
    reserved_ = before;
  }
  /// A pass has ended. Where time is simulated, the task's passes here.
  void ends(PipelineEvent& event) {
    if (const plan::StageLengths& lengths = local_stages.team->options.lengths; !lengths.stages.empty()) {
      link().compute(plan::detail::length_of(lengths, event.step));
      link().progress();  // ranks whose clocks are behind go first: what they send comes before
    }
    event.end = local_stages.clock();
  }

  /// The input of a line's forward is asked of the process that has the stage before.
  void ask(const Program& p, const Line& line, long count, const PipelineCall& call) {
    Stage& local = local_stages.of(line.step.stage);
    link().receive(local.request(line.slot, SlotMessage::input), local.edge(line.slot, SlotMessage::input).data(),
                   edge_bytes(samples(line, count, call) * local.executor->input_pitch()),
                   local_stages.team->process_of(local.stage - 1), tag(local.stage, false, line.step.micro, p));
  }
  void forward(const Program& p, Stage& local, const Line& line, const View& batch, const PipelineCall& call,
               PipelineEvent& event) {
    const int stage = line.step.stage, micro = line.step.micro;
    if (line.receives) local_stages.wait(local.request(line.slot, SlotMessage::input));
    if (line.sends) local_stages.wait(local.request(line.slot, SlotMessage::output));
    event.begin = local_stages.clock();
    const long begin = micro * call.size;
    View m = batch.part(begin, begin + samples(line, batch.count, call));
    if (line.receives) local.edge(line.slot, SlotMessage::input).write(at(m.count * local.executor->input_pitch()));
    if (stage > 0) m.x = nullptr;  // it is in the slot
    const double expected_weight = p.synchronous ? call.expected_weight : expected_batch_weight(call.size);
    local.executor->forward({.slot = line.slot,
                             .phase = call.phase,
                             .scale = 1 / expected_weight,
                             .loss_scale = call.loss_scale,
                             .key = call.key,
                             .version = line.reads_version},
                            m);
    ends(event);
    hand_on(p, local, line, m.count);
    if (stage + 1 == Model::stages) {
      micro_sums_[at(micro)] = local.executor->sums(line.slot);
      if (call.phase == nn::Phase::evaluation)
        ops::copy<Device>(outputs_.data() + micro * call.size * OutputPitch, local.executor->outputs(line.slot),
                          m.count * OutputPitch);
    } else if (call.phase == nn::Phase::training && line.sends) {
      link().receive(local.request(line.slot, SlotMessage::gradient_in), local.edge(line.slot, SlotMessage::gradient_in).data(),
                     edge_bytes(m.count * local.executor->output_pitch()) + tail_bytes, local_stages.team->process_of(stage + 1),
                     tag(stage, true, micro, p));
    }
  }
  void backward(const Program& p, Stage& local, const Line& line, long count, PipelineEvent& event) {
    if (line.receives) {
      local_stages.wait(local.request(line.slot, SlotMessage::gradient_in));
      auto& edge = local.edge(line.slot, SlotMessage::gradient_in);
      const std::size_t n = at(count * local.executor->output_pitch());
      std::memcpy(static_cast<void*>(&micro_sums_[at(line.step.micro)]), edge.data() + n, tail_bytes);
      edge.write(n);
    }
    if (line.sends) local_stages.wait(local.request(line.slot, SlotMessage::gradient_out));
    event.begin = local_stages.clock();
    const bool add = !std::exchange(local.fresh, !p.synchronous);
    if (line.step.task == plan::Task::backward) local.executor->backward(line.slot, add);
    else local.executor->backward_input(line.slot, add);
    ends(event);
    hand_back(p, local, line, count);
  }
  /// Updates a stage by the gradients of all micro-batches; by a table that is not synchronous, by those of this one alone.
  /// ready: the gradients are those of the step.
  void update(const Program& p, Stage& local, const Line& line, const PipelineCall& call, bool& ready) {
    if (p.synchronous) {
      if (!std::exchange(ready, true)) updates.begin(*workers_, call, batch_sums(call));
      updates.update(*workers_, local);
      return;
    }
    const int micro = line.step.micro;
    if (line.saves_version) local.executor->save_version(*line.saves_version);
    micro_all_[at(micro)] =
        updates.update_alone(*workers_, local, call, micro_sums_[at(micro)], expected_batch_weight(call.size), micro);
  }
  /// The output goes to the next stage: of another process, or of this one.
  void hand_on(const Program& p, Stage& local, const Line& line, long count) {
    const long n = count * local.executor->output_pitch();
    if (line.sends) {
      auto& edge = local.edge(line.slot, SlotMessage::output);
      edge.read(at(n));
      link().send(local.request(line.slot, SlotMessage::output), edge.data(), edge_bytes(n),
                  local_stages.team->process_of(local.stage + 1), tag(local.stage + 1, false, line.step.micro, p));
    }
    if (line.to >= 0)
      ops::copy<Device>(local_stages.of(local.stage + 1).executor->input(line.to), local.executor->output(line.slot), n);
  }
  /// The gradient of the input, and the sums of its micro-batch, to the stage before.
  void hand_back(const Program& p, Stage& local, const Line& line, long count) {
    const long n = count * local.executor->input_pitch();
    if (line.sends) {
      auto& edge = local.edge(line.slot, SlotMessage::gradient_out);
      edge.read(at(n));
      std::memcpy(static_cast<void*>(edge.data() + n), &micro_sums_[at(line.step.micro)], tail_bytes);
      link().send(local.request(line.slot, SlotMessage::gradient_out), edge.data(), edge_bytes(n) + tail_bytes,
                  local_stages.team->process_of(local.stage - 1), tag(local.stage - 1, true, line.step.micro, p));
    }
    if (line.to >= 0)
      ops::copy<Device>(local_stages.of(local.stage - 1).executor->gradient(line.to), local.executor->input_gradient(line.slot),
                        n);
  }

  std::unique_ptr<Workers> workers_;
  std::vector<std::pair<bool, std::unique_ptr<Program>>> programs_;
  std::vector<Sums> micro_sums_, micro_all_;
  Arena<Scalar, Device> outputs_;
  nn::BatchOnDevice<Scalar, Device> batch_on_device_;
  long capacity_ = 0;
  bool halves_ = false, reserved_ = false;
};

}  // namespace skein::inline SKEIN_ABI::parallel::detail
