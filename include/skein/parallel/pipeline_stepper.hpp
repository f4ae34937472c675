// SPDX-License-Identifier: Apache-2.0
// PipelineStepper: one training step through the stages of this process, as the lines of a schedule say (plan/pipeline_program.hpp) and in
// no other order. Gradients flow back with the sums of their micro-batch behind them, so that every stage knows the batch's loss and divisor
// without a message of its own. The Trainer uses it in place of train::Stepper.
#pragma once
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../nn/pass_options.hpp"
#include "../nn/step_memory.hpp"
#include "../optim/clip.hpp"
#include "../optim/state.hpp"
#include "../plan/pipeline_program.hpp"
#include "pipeline_team.hpp"
#include "staged_model.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// As train::StepOptions, for loops written by hand.
struct PipelineStepOptions {
  double lr_factor = 1, clip_norm = 0;
  bool accumulate = false, update = true;
  std::uint64_t key = 0;
};

template <class Model, class Loss, class Optimizer> class PipelineStepper {
 public:
  using Scalar = typename Model::Scalar;
  using Device = typename Model::device;
  using Sums = nn::LossSums;
  using Strand = PipelineStrand<Scalar>;
  static constexpr int virtual_shards = 0;
  static constexpr long Width = Model::output_extents.count(), OutputPitch = sample_pitch(Model::output_extents);

  /// Initial weights are agreed here: all ranks make their stepper at the same time.
  template <class Policy> PipelineStepper(Model& model, Loss loss, const Optimizer& optimizer, const Policy& policy)
      : model_(&model), loss_(std::move(loss)), team_(policy.team()), strand_(team_), asked_optimizer_(optimizer) {
    (void)optim::BoundOptimizer<Optimizer, Scalar, Device>(optimizer, Model::program);        // groups that match nothing are told here
    Optimizer part = optimizer;
    if constexpr (requires { part.groups.rules; })
      for (auto& rule : part.groups.rules) rule.may_match_nothing = true;
    for (int s = 0; s < Model::stages; ++s) {
      if (!model.holds(s)) continue;
      Held h;
      h.stage = s;
      h.pass = model.pass(s, loss_);
      h.stored = static_cast<long>(model.parameters(s).size);
      h.optimizer = std::make_unique<optim::BoundOptimizer<Optimizer, Scalar, Device>>(part, Model::table(s));
      strand_.buffers.push_back(model.buffers(s));
      held_.push_back(std::move(h));
    }
    find_tied();
    start();
  }

  /// Memory for batches of at most `options.batch` samples of this pipeline.
  void reserve(PassOptions options) {
    if (options.threads <= 0) options.threads = threads();
    if (options.execution == Execution::depth_first)
      throw ArgumentError("Pipeline: depth-first blocks cut a batch for the cache, micro-batches cut it for the ranks: leave .execution as it is");
    if (reserved() && capacity_ >= options.batch && workers_->size() == options.threads) return;
    if (!workers_ || workers_->size() != options.threads) workers_ = std::make_unique<Workers>(options.threads);
    capacity_ = std::max(capacity_, options.batch);
    outputs_ = Arena<Scalar>(static_cast<std::size_t>(capacity_ * OutputPitch));
    for (Held& h : held_) h.slots = h.kept = 0;
    programs_.clear();
    make_memory();
    prepare(capacity_);
  }
  bool reserved() const { return workers_ != nullptr; }

  /// One step on this pipeline's samples of a batch. Returns the sums over all of them, on every rank. PipeDream makes an update for each
  /// micro-batch; the pipeline drains at the end of the batch. All ranks of the pipeline give the same batch.
  template <class Batch, class Options> Sums step(const Batch& batch, const Options& options) {
    check_labels(batch);
    const long size = micro_size(batch.global_count);
    const plan::PipelineProgram* found = &program_for(micros(batch.count, size), false);
    if (team_->data && !found->synchronous) {       // PipeDream's pipelines meet after each micro-batch: all have as many
      const int replicas = team_->options.replicas;
      const long most = (static_cast<long>(batch.global_count) + replicas - 1) / replicas;
      if (batch.count > most)
        throw ArgumentError("Pipeline: PipeDream over several pipelines wants even parts of a batch: one has " +
                            std::to_string(batch.count) + " of " + std::to_string(batch.global_count) + " samples");
      found = &program_for(micros(most, size), false);
    }
    const plan::PipelineProgram& program = *found;
    const bool together = program.synchronous;
    if (!together && (options.accumulate || !options.update || options.clip_norm > 0))
      throw ArgumentError(
          "Pipeline: PipeDream updates after each micro-batch: no accumulation over batches, and no norm of all gradients to "
          "clip by");
    if (accumulated_ == 0) nominal_ = nominal_weight(size);
    Call call;
    call.size = size;
    call.phase = nn::Phase::training;
    call.key = options.key;
    call.accumulate = options.accumulate;
    call.update = options.update;
    call.lr = static_cast<double>(asked_optimizer_.lr) * options.lr_factor;
    call.clip = options.clip_norm;
    if (!call.accumulate) carried_ = {};
    run(program, batch, call);
    for (const Sums& s : together ? micro_sums_ : micro_all_) carried_ += s;                 // in the order of the micro-batches
    Sums sums = call.update && together ? all_sums_ : carried_;
    accumulated_ = call.update ? 0 : accumulated_ + 1;
    if (call.update) {
      step_ += together ? 1 : program.micros;
      totals_ += sums;
    }
    return sums;
  }
  template <class Batch> Sums step(const Batch& batch) { return step(batch, PipelineStepOptions{}); }

  /// Forward and loss, in evaluation phase, micro-batches one behind the other through the stages. The sums are the last stage's; with neither
  /// labels nor targets, every rank has the outputs.
  template <class Batch> Sums evaluate(const Batch& batch, bool accumulate = false) {
    check_labels(batch);
    Call call;
    call.size = micro_size(batch.count * team_->options.replicas);
    call.phase = nn::Phase::evaluation;
    run(program_for(micros(batch.count, call.size), true), batch, call);
    Sums sums;
    for (const Sums& s : micro_sums_) sums += s;
    evaluated_ = accumulate ? (evaluated_ += sums) : sums;
    if (!batch.labels && !batch.targets && team_->processes > 1)
      team_->line->broadcast(outputs_.data(), static_cast<std::size_t>(batch.count * OutputPitch) * sizeof(Scalar),
                             team_->process_of(Model::stages - 1));
    return evaluated_;
  }

  /// Programs and primitives for batches of so many samples.
  void prepare(long batch) {
    const long size = micro_size(batch * team_->options.replicas);
    const int n = micros(batch, size);
    (void)program_for(n, false);
    (void)program_for(n, true);
    for (Held& h : held_) {
      h.pass->prepare(std::min(size, batch));
      if (batch % size > 0) h.pass->prepare(batch % size);
    }
  }

  nn::LossSums totals() const { return totals_; }
  void set_totals(const nn::LossSums& s) { totals_ = s; }
  Model& model() const { return *model_; }
  Strand& strand() { return strand_; }
  const Strand& strand() const { return strand_; }
  const Loss& loss() const { return loss_; }
  std::int64_t steps() const { return step_; }
  void set_steps(std::int64_t n) { step_ = n; }
  double gradient_norm() const { return norm_; }
  optim::BoundOptimizer<Optimizer, Scalar, Device>& optimizer() { return *held_.front().optimizer; }
  int threads() const {
    const int cores = available_cores(), sharing = strand_.local_ranks();
    if (std::getenv("SKEIN_THREADS")) return Workers::default_count();
    const bool bound = cores < static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
    return bound && !strand_.threads_of_one_process() ? cores : std::max(1, cores / std::max(1, sharing));
  }

  // What a Trainer asks of a pass and a device.
  PipelineStepper& pass() { return *this; }
  long capacity() const { return capacity_; }
  const Scalar* outputs() const { return outputs_.data(); }
  nn::StepMemory<Device>& memory() { return memory_; }
  struct Note {
    static constexpr std::string_view note() { return {}; }
  };
  Note device() const { return {}; }

  // ---- files: those of the whole network in one model ----------------------------------------------------------------

  /// All ranks: brings the stages' parameters, buffers and optimizer state together on rank 0, until drop_state().
  void gather_state() {
    if (team_->replica > 0) return;
    if (team_->process == 0) make_whole();
    for (std::size_t a = 0; a < static_cast<std::size_t>(2 + optimizer().arrays()); ++a)
      for (int s = 0; s < Model::stages; ++s) {
        const int from = team_->process_of(s);
        const plan::Range r = a == 1 ? Model::buffer_range(s) : Model::range(s);
        if (r.begin == r.end || (team_->process != 0 && from != team_->process)) continue;
        const std::size_t bytes = static_cast<std::size_t>(r.end - r.begin) * sizeof(Scalar);
        if (from == 0) {
          if (team_->process == 0) std::memcpy(whole_[a].data() + r.begin, mine(a, s), bytes);
        } else if (team_->process == 0) {
          team_->line->receive(0, whole_[a].data() + r.begin, bytes, from, file_tag);
          team_->line->wait(0);
        } else {
          team_->line->send(0, mine(a, s), bytes, 0, file_tag);
          team_->line->wait(0);
        }
      }
  }
  void drop_state() { whole_.clear(); }
  DeviceSpan<Scalar> whole_parameters() { return make_whole()[0].span(); }
  DeviceSpan<Scalar> whole_buffers() { return make_whole()[1].span(); }
  DeviceSpan<Scalar> state(int k) { return whole_[static_cast<std::size_t>(2 + k)].span(); }
  void set_state(int k, const Scalar* whole) {
    for (Held& h : held_)
      std::memcpy(mine(static_cast<std::size_t>(2 + k), h.stage), whole + Model::range(h.stage).begin,
                  static_cast<std::size_t>(h.stored) * sizeof(Scalar));
  }
  /// After whole_parameters() and whole_buffers() were written: each stage takes its own.
  void scatter() {
    for (Held& h : held_) {
      std::memcpy(mine(0, h.stage), whole_[0].data() + Model::range(h.stage).begin, static_cast<std::size_t>(h.stored) * sizeof(Scalar));
      const plan::Range b = Model::buffer_range(h.stage);
      if (b.end > b.begin) std::memcpy(mine(1, h.stage), whole_[1].data() + b.begin, static_cast<std::size_t>(b.end - b.begin) * sizeof(Scalar));
    }
    drop_state();
  }

  /// Bytes of what grows with the micro-batches in flight, and micro-batches that this process has memory for.
  long activation_bytes() const {
    long n = 0;
    for (const Held& h : held_) n += h.pass->bytes();
    return n;
  }
  int slots() const {
    int n = 0;
    for (const Held& h : held_) n += h.slots;
    return n;
  }
  /// The lines that a batch of so many micro-batches runs.
  const plan::PipelineProgram& program(int micros) { return program_for(micros, false); }

 private:
  struct Held {                                     // a stage of this process
    int stage = 0, slots = 0, kept = 0, requests = 0;                     // requests: its first
    long stored = 0;
    const Scalar* gradient = nullptr;
    bool fresh = true;                              // nothing is in the gradients yet: of backward
    bool fresh_parameters = true;                   // of its second half
    std::unique_ptr<nn::AnyStage<Scalar>> pass;
    std::unique_ptr<optim::BoundOptimizer<Optimizer, Scalar, Device>> optimizer;
  };
  struct Tied {                                     // one side of a pair that this process has, or both
    int stage[2] = {-1, -1};
    long offset[2] = {0, 0}, stored = 0;
    Arena<Scalar> other;
  };
  struct Call {
    long size = 1;                                  // of a micro-batch
    nn::Phase phase = nn::Phase::training;
    std::uint64_t key = 0;
    bool accumulate = false, update = true;
    double lr = 0, clip = 0;
  };
  enum Request { input, gradient_in, output, gradient_out };
  static constexpr long tail_bytes = 3 * sizeof(double);
  static_assert(tail_bytes <= gradient_tail * static_cast<long>(sizeof(Scalar)));

  std::vector<Arena<Scalar>>& make_whole() {
    if (whole_.empty()) {
      whole_.emplace_back(static_cast<std::size_t>(Model::sizes.stored));
      whole_.emplace_back(static_cast<std::size_t>(Model::sizes.buffers));
      for (int k = 0; k < optimizer().arrays(); ++k) whole_.emplace_back(static_cast<std::size_t>(Model::sizes.stored));
    }
    return whole_;
  }
  /// This process's part of array a: parameters, buffers, then the optimizer's.
  Scalar* mine(std::size_t a, int stage) {
    if (a == 0) return model_->parameters(stage).data;
    return a == 1 ? model_->buffers(stage).data : held(stage).optimizer->array(static_cast<int>(a) - 2).data;
  }
  Held& held(int stage) {
    for (Held& h : held_)
      if (h.stage == stage) return h;
    throw Error("pipeline: a line of another process's stage");
  }
  long micro_size(long global_count) const {
    const PipelineOptions& o = team_->options;
    if (o.micro_batch > 0) return o.micro_batch;
    const long mine = (global_count + o.replicas - 1) / o.replicas;
    return std::max(1L, (mine + o.micro_batches - 1) / o.micro_batches);
  }
  static int micros(long count, long size) { return static_cast<int>(std::max(1L, (count + size - 1) / size)); }
  static double nominal_weight(long samples) {
    const double n = static_cast<double>(samples > 0 ? samples : 1);
    return Loss::target == nn::Target::vector ? n * static_cast<double>(Width) : n;
  }
  template <class Batch> void check_labels(const Batch& batch) const {
    if constexpr (Loss::target == nn::Target::label) {
      std::optional<std::int32_t> ignore;
      if constexpr (requires { loss_.ignore_label; }) ignore = loss_.ignore_label;
      if (batch.labels) nn::check_labels(batch.labels, batch.count, Width, ignore);
    }
  }

  void start() {
    team_->line->reserve(1);
    if (strand_.ranks() == 1) return tie_weights();
    plan::Fingerprint f;
    const PipelineOptions& o = team_->options;
    f.add(Model::fingerprint).add(sizeof(Scalar)).add(static_cast<std::uint64_t>(o.schedule)).add(static_cast<std::uint64_t>(o.micro_batches));
    f.add(static_cast<std::uint64_t>(o.micro_batch)).add(static_cast<std::uint64_t>(o.replicas)).add(static_cast<std::uint64_t>(o.vertical_sync));
    for (int s = 0; s < Model::stages; ++s) f.add(static_cast<std::uint64_t>(Model::range(s).end));
    for (const TiedParameters& t : o.tied) f.add(std::string_view(t.first)).add(std::string_view(t.second));
    team_->world->assert_same("the pipelines (network, stages, input shape, scalar, options)", f.value());
    if (team_->data)
      for (Held& h : held_) {
        const auto p = model_->parameters(h.stage), b = model_->buffers(h.stage);
        team_->data->broadcast(p.data, p.size * sizeof(Scalar), 0);
        if (b.size > 0) team_->data->broadcast(b.data, b.size * sizeof(Scalar), 0);
      }
    tie_weights();
  }

  // ---- programs and memory -----------------------------------------------------------------------------------------

  const plan::PipelineProgram& program_for(int n, bool forward_only) {
    for (const auto& p : programs_)
      if (p.first == forward_only && p.second->micros == n) return *p.second;
    plan::PipelineProgramOptions o;
    o.first_rank = team_->first_rank;
    o.last_rank = team_->last_rank;
    o.forward_only = forward_only;
    o.vertical_sync = team_->options.vertical_sync;
    const plan::Schedule schedule = pipeline_schedule(team_->options, team_->ranks, Model::stages, n);
    if (schedule.stages != Model::stages || schedule.ranks != team_->ranks || schedule.micros != n)
      throw ArgumentError("Pipeline: .table gave " + std::to_string(schedule.stages) + " stages over " +
                          std::to_string(schedule.ranks) + " ranks and " + std::to_string(schedule.micros) +
                          " micro-batches; it was asked for " + std::to_string(Model::stages) + ", " +
                          std::to_string(team_->ranks) + " and " + std::to_string(n));
    if (2L * Model::stages * n > first_tied_tag)
      throw ArgumentError("Pipeline: " + std::to_string(n) + " micro-batches are too many for " + std::to_string(Model::stages) +
                          " stages");
    programs_.emplace_back(forward_only, std::make_unique<plan::PipelineProgram>(plan::pipeline_program(schedule, o)));
    const plan::PipelineProgram& p = *programs_.back().second;
    bool more = p.halves && !halves_;
    for (const Held& h : held_) more = more || p.slots[at(h.stage)] > h.slots || p.kept[at(h.stage)] > h.kept;
    if (more) {
      for (Held& h : held_) h.slots = std::max(h.slots, p.slots[at(h.stage)]), h.kept = std::max(h.kept, p.kept[at(h.stage)]);
      halves_ = halves_ || p.halves;
      make_memory();
    }
    micro_sums_.reserve(at(n));
    micro_all_.reserve(at(n));
    strand_.events.reserve(p.lines.size());
    return p;
  }
  void make_memory() {
    int requests = 0;
    const long size = team_->options.micro_batch > 0 ? std::min(team_->options.micro_batch, capacity_)
                                                     : micro_size(capacity_ * team_->options.replicas);
    for (Held& h : held_) {
      if (h.slots == 0) h.slots = 1;
      nn::StageOptions o;
      o.batch = size;
      o.slots = h.slots;
      o.kept = h.kept;
      o.halves = halves_;
      o.first = h.stage == 0;
      o.ordinal = Model::ordinal(h.stage);
      h.pass->reserve(*workers_, o);
      h.requests = requests;
      requests += 4 * h.slots;
    }
    tied_requests_ = requests;
    team_->line->reserve(std::max(1, requests + 2 * static_cast<int>(tied_.size())));
  }

  // ---- the interpreter -----------------------------------------------------------------------------------------------

  double clock() const { return team_->line->now(); }
  /// Where time is simulated, the task's passes here.
  void pass_time(const plan::Step& s) {
    if (team_->options.lengths.stages.empty()) return;
    team_->line->compute(plan::detail::length_of(team_->options.lengths, s));
    team_->line->progress();                        // ranks whose clocks are behind go first: what they send comes before
  }
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  static int request(const Held& h, int slot, Request kind) { return h.requests + 4 * slot + kind; }
  int tag(int stage, bool back, int micro, const plan::PipelineProgram& p) const { return (2 * stage + back) * p.micros + micro; }
  void wait(int request) {
    const double before = clock();
    team_->line->wait(request);
    strand_.waited += clock() - before;
  }

  template <class Batch> void run(const plan::PipelineProgram& p, const Batch& batch, const Call& call) {
    micro_sums_.assign(at(p.micros), {});
    micro_all_.assign(at(p.micros), {});
    strand_.events.clear();
    for (Held& h : held_) h.fresh = h.fresh_parameters = !call.accumulate;
    bool ready = false;                             // gradients have been made those of the step
    const auto samples = [&](int micro) { return std::clamp(static_cast<long>(batch.count) - micro * call.size, 0L, call.size); };
    const auto ask = [&](const plan::PipelineLine& line) {
      Held& h = held(line.step.stage);
      team_->line->receive(request(h, line.slot, input), h.pass->input(line.slot),
                           static_cast<std::size_t>(samples(line.step.micro) * h.pass->input_pitch()) * sizeof(Scalar),
                           team_->process_of(h.stage - 1), tag(h.stage, false, line.step.micro, p));
    };
    for (const plan::PipelineLine& line : p.lines) {
      const int stage = line.step.stage, micro = line.step.micro;
      Held& h = held(stage);
      if (line.asks) ask(line);
      if (line.ahead >= 0) ask(p.lines[at(line.ahead)]);
      PipelineEvent event{line.step, 0, 0};
      switch (line.step.task) {
        case plan::Task::forward: {
          if (line.receives) wait(request(h, line.slot, input));
          if (line.sends) wait(request(h, line.slot, output));
          event.begin = clock();
          nn::MicroBatch<Scalar> m;
          m.count = samples(micro);
          m.first = static_cast<std::uint64_t>(batch.first) + static_cast<std::uint64_t>(micro * call.size);
          if (stage == 0) m.x = batch.x + micro * call.size * batch.pitch, m.pitch = batch.pitch;
          if (batch.labels) m.labels = batch.labels + micro * call.size;
          if (batch.targets) m.targets = batch.targets + micro * call.size * batch.target_pitch, m.target_pitch = batch.target_pitch;
          const double nominal = p.synchronous ? nominal_ : nominal_weight(call.size);
          h.pass->forward({.slot = line.slot, .phase = call.phase, .scale = 1 / nominal, .key = call.key, .kept = line.weights}, m);
          pass_time(line.step);
          event.end = clock();
          hand_on(p, h, line, m.count);
          if (stage + 1 == Model::stages) {
            micro_sums_[at(micro)] = h.pass->sums(line.slot);
            if (call.phase == nn::Phase::evaluation)
              ops::copy<Device>(outputs_.data() + micro * call.size * OutputPitch, h.pass->output(line.slot), m.count * OutputPitch);
          } else if (call.phase == nn::Phase::training && line.sends) {
            team_->line->receive(request(h, line.slot, gradient_in), h.pass->gradient(line.slot), gradient_bytes(m.count * h.pass->output_pitch()),
                                 team_->process_of(stage + 1), tag(stage, true, micro, p));
          }
          break;
        }
        case plan::Task::backward:
        case plan::Task::input_gradient: {
          const long count = samples(micro);
          if (line.receives) {
            wait(request(h, line.slot, gradient_in));
            std::memcpy(static_cast<void*>(&micro_sums_[at(micro)]), h.pass->gradient(line.slot) + count * h.pass->output_pitch(), tail_bytes);
          }
          if (line.sends) wait(request(h, line.slot, gradient_out));
          event.begin = clock();
          const bool add = !std::exchange(h.fresh, !p.synchronous);
          if (line.step.task == plan::Task::backward) h.pass->backward(line.slot, add);
          else h.pass->backward_input(line.slot, add);
          pass_time(line.step);
          event.end = clock();
          hand_back(p, h, line, count);
          break;
        }
        case plan::Task::weight_gradient:
          event.begin = clock();
          h.pass->backward_parameters(line.slot, !std::exchange(h.fresh_parameters, !p.synchronous));
          pass_time(line.step);
          event.end = clock();
          break;
        case plan::Task::update:
          event.begin = clock();
          if (call.update) {
            if (p.synchronous) {
              if (!std::exchange(ready, true)) settle(call);
              update(h, call, all_sums_.weight, nominal_, step_ + 1);
            } else {
              if (line.keeps >= 0) h.pass->keep(line.keeps);
              h.pass->reduce_workers();
              const Sums all = over_pipelines(h, micro_sums_[at(micro)]);
              micro_all_[at(micro)] = all;
              update(h, call, all.weight, nominal_weight(call.size), step_ + 1 + micro);
            }
          }
          pass_time(line.step);
          event.end = clock();
          break;
      }
      strand_.events.push_back(event);
      if (team_->processes > 1) team_->line->progress();
    }
    for (Held& h : held_)
      for (int s = 0; s < h.slots; ++s)
        for (Request kind : {output, gradient_out}) wait(request(h, s, kind));
  }
  static std::size_t gradient_bytes(long scalars) { return static_cast<std::size_t>(scalars) * sizeof(Scalar) + tail_bytes; }

  /// The output goes to the next stage: of another process, or of this one.
  void hand_on(const plan::PipelineProgram& p, Held& h, const plan::PipelineLine& line, long count) {
    const long n = count * h.pass->output_pitch();
    if (line.sends)
      team_->line->send(request(h, line.slot, output), h.pass->output(line.slot), static_cast<std::size_t>(n) * sizeof(Scalar),
                        team_->process_of(h.stage + 1), tag(h.stage + 1, false, line.step.micro, p));
    if (line.to >= 0) ops::copy<Device>(held(h.stage + 1).pass->input(line.to), h.pass->output(line.slot), n);
  }
  /// The gradient of the input, and the sums of its micro-batch, to the stage before.
  void hand_back(const plan::PipelineProgram& p, Held& h, const plan::PipelineLine& line, long count) {
    const long n = count * h.pass->input_pitch();
    if (line.sends) {
      Scalar* dx = h.pass->input_gradient(line.slot);
      std::memcpy(dx + n, &micro_sums_[at(line.step.micro)], tail_bytes);
      team_->line->send(request(h, line.slot, gradient_out), dx, gradient_bytes(n), team_->process_of(h.stage - 1),
                        tag(h.stage - 1, true, line.step.micro, p));
    }
    if (line.to >= 0) ops::copy<Device>(held(h.stage - 1).pass->gradient(line.to), h.pass->input_gradient(line.slot), n);
  }

  /// Before the first update of a synchronous step: gradients and sums become those of all workers, pipelines and tied twins.
  void settle(const Call& call) {
    Sums sums = carried_;
    for (const Sums& s : micro_sums_) sums += s;
    all_sums_ = sums;
    for (Held& h : held_) {
      h.pass->reduce_workers();
      all_sums_ = over_pipelines(h, sums);
    }
    exchange_tied();
    clip_factor_ = 1;
    if (call.clip <= 0) return;
    double sum[1] = {0};
    for (Held& h : held_) sum[0] += h.optimizer->sum_of_squares(step_call(h, call, all_sums_.weight, nominal_, step_ + 1), 0, h.stored);
    if (team_->processes > 1) team_->line->sum(DeviceSpan<double>(sum, 1));
    norm_ = std::sqrt(sum[0]);
    clip_factor_ = static_cast<double>(optim::ClipNorm{static_cast<float>(call.clip)}(norm_));
  }
  /// The gradients of a stage, and the sums behind them, over the pipelines beside each other.
  Sums over_pipelines(Held& h, const Sums& sums) {
    if (!team_->data) return sums;
    const auto g = h.pass->gradients();
    Scalar* tail = g.data + h.stored;
    tail[0] = static_cast<Scalar>(sums.loss);
    tail[1] = static_cast<Scalar>(sums.weight);
    tail[2] = static_cast<Scalar>(sums.correct);
    const double before = clock();
    team_->data->sum(g);
    strand_.waited += clock() - before;
    return {static_cast<double>(tail[0]), static_cast<double>(tail[1]), static_cast<double>(tail[2])};
  }
  optim::StepCall<Scalar> step_call(Held& h, const Call& call, double weight, double nominal, std::int64_t step) {
    optim::StepCall<Scalar> c;
    c.step = step;
    c.lr = call.lr;
    c.gradient_scale = weight > 0 ? nominal / weight : 0;
    h.gradient = h.pass->gradients().data;
    c.gradients = &h.gradient;
    return c;
  }
  void update(Held& h, const Call& call, double weight, double nominal, std::int64_t step) {
    optim::StepCall<Scalar> c = step_call(h, call, weight, nominal, step);
    if (call.clip > 0) c.gradient_scale *= clip_factor_;
    Scalar* parameters = h.pass->parameters().data;
    workers_->run([&](Worker& w) {
      const auto slice = w.slice(h.stored, 16);
      if (slice.first < slice.second) h.optimizer->update(parameters, c, slice.first, slice.second);
    });
  }

  // ---- tied parameters -----------------------------------------------------------------------------------------------

  static constexpr int first_tied_tag = 31000, file_tag = 31999;
  void find_tied() {
    for (const TiedParameters& t : team_->options.tied) {
      Tied tied;
      const std::string_view names[2] = {t.first, t.second};
      Extents extents[2];
      for (int k = 0; k < 2; ++k) {
        for (const plan::Entry& e : Model::program.parameters()) {
          if (!(Model::program.name(e) == names[k])) continue;
          for (int s = 0; s < Model::stages; ++s)
            if (e.offset >= Model::range(s).begin && e.offset < Model::range(s).end)
              tied.stage[k] = s, tied.offset[k] = e.offset - Model::range(s).begin;
          tied.stored = e.stored;
          extents[k] = e.extents;
        }
        if (tied.stage[k] < 0) throw ArgumentError("Pipeline: .tied names '" + std::string(names[k]) + "', which is no parameter of the network");
      }
      if (!(extents[0] == extents[1])) throw ArgumentError("Pipeline: .tied: '" + t.first + "' and '" + t.second + "' have different shapes");
      if (team_->options.schedule == PipelineSchedule::pipedream && !team_->options.table)
        throw ArgumentError("Pipeline: .tied wants one update a step, of all stages: PipeDream's stages step one by one");
      tied.other = Arena<Scalar>(static_cast<std::size_t>(tied.stored));
      tied_.push_back(std::move(tied));
    }
  }
  Scalar* side(const Tied& t, int k, bool gradients) {
    if (!model_->holds(t.stage[k])) return nullptr;
    return (gradients ? model_->gradients(t.stage[k]) : model_->parameters(t.stage[k])).data + t.offset[k];
  }
  /// The values of both sides: where one is another process's, the two exchange.
  template <class Use> void with_both(bool gradients, Use&& use) {
    for (std::size_t i = 0; i < tied_.size(); ++i) {
      Tied& t = tied_[i];
      Scalar* sides[2] = {side(t, 0, gradients), side(t, 1, gradients)};
      if (!sides[0] && !sides[1]) continue;
      for (int k = 0; k < 2; ++k)
        if (sides[k] && !sides[1 - k]) {
          const int other = team_->process_of(t.stage[1 - k]), r = tied_requests_ + 2 * static_cast<int>(i),
                    tag = first_tied_tag + static_cast<int>(i);
          const std::size_t bytes = static_cast<std::size_t>(t.stored) * sizeof(Scalar);
          team_->line->receive(r, t.other.data(), bytes, other, tag);
          team_->line->send(r + 1, sides[k], bytes, other, tag);
          wait(r);
          wait(r + 1);
        }
      use(t, sides);
    }
  }
  void tie_weights() {
    if (tied_.empty()) return;
    tied_requests_ = 0;
    team_->line->reserve(2 * static_cast<int>(tied_.size()));
    with_both(false, [&](Tied& t, Scalar* const* sides) {
      if (!sides[1]) return;
      const Scalar* first = sides[0] ? sides[0] : t.other.data();
      for (long i = 0; i < t.stored; ++i) sides[1][i] = first[i];
    });
    model_->parameters();
  }
  void exchange_tied() {
    with_both(true, [&](Tied& t, Scalar* const* sides) {
      const Scalar *first = sides[0] ? sides[0] : t.other.data(), *second = sides[1] ? sides[1] : t.other.data();
      for (long i = 0; i < t.stored; ++i) {
        const Scalar sum = first[i] + second[i];
        if (sides[0]) sides[0][i] = sum;
        if (sides[1]) sides[1][i] = sum;
      }
    });
  }

  Model* model_;
  Loss loss_;
  std::shared_ptr<PipelineTeam> team_;
  Strand strand_;
  Optimizer asked_optimizer_;
  std::unique_ptr<Workers> workers_;
  std::vector<Held> held_;
  std::vector<Tied> tied_;
  std::vector<std::pair<bool, std::unique_ptr<plan::PipelineProgram>>> programs_;
  std::vector<Sums> micro_sums_, micro_all_;        // of this pipeline; of all, as PipeDream's updates learn them
  std::vector<Arena<Scalar>> whole_;                // while a file is written or read
  Arena<Scalar> outputs_;
  nn::StepMemory<Device> memory_{};
  Sums carried_{}, all_sums_{}, evaluated_{}, totals_{};                  // carried_: of the batches that are accumulated
  long capacity_ = 0, accumulated_ = 0;
  int tied_requests_ = 0;
  bool halves_ = false;
  double nominal_ = 1, norm_ = 0, clip_factor_ = 1;
  std::int64_t step_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::parallel
