// SPDX-License-Identifier: Apache-2.0
// The updates of a pipeline's stages. A parameter is one stage's, whole, so that transforms of tensors are a stage's own affair;
// a norm is over all stages, of all processes. In a synchronous step the stages update together, or, where a gradient is not
// finite, skip together: that shows in the norm, which is taken then whether or not it is clipped by. PipeDream's stages update
// one by one.
#pragma once
#include <cmath>
#include <utility>
#include <vector>

#include "../../optim/clip.hpp"
#include "../../optim/transform/visit_tensor.hpp"
#include "../../plan/buckets.hpp"
#include "pipeline_call.hpp"
#include "pipeline_local_stages.hpp"

namespace skein::inline SKEIN_ABI::parallel::detail {

/// What the workers of a process hand to each other in an update.
struct PipelineUpdateMemory {
  std::vector<double> numbers{};  // one a piece of the stages' arenas
  double shared = 0;
};

/// What a chain works with (optim/transform/chain.hpp): the gradients of a process's stages as one worker sees them. Every worker
/// calls the same in the same order; so do the processes.
template <class LocalStages> class PipelineGradient {
  using Scalar = typename LocalStages::Scalar;
  using Stage = typename LocalStages::Stage;

 public:
  static constexpr int pieces = on_host<typename LocalStages::Device> ? optim::norm_pieces : 1;  // a device has one worker

  PipelineGradient(const Worker& w, LocalStages& stages, PipelineUpdateMemory& memory, const optim::StepCall<Scalar>& call)
      : worker_(w), stages_(stages), memory_(memory), call_(call) {}

  /// Is it one array a stage as it is, of all samples and scaled?
  bool whole() const { return whole_ && call_.gradient_scale == 1; }
  void multiply(double factor) { call_.gradient_scale *= factor; }
  /// By transform.factor(norm).
  template <class Transform> void scale_by_norm(const Transform& transform) { multiply(transform.factor(norm())); }
  double scale() const { return call_.gradient_scale; }
  /// Its norm, of all that is not frozen, over all stages. In pieces of their arenas, whoever adds them up, or pipelines beside
  /// each other would drift apart where their ranks have other numbers of threads.
  double norm() {
    if (std::exchange(numbers_read_, true)) worker_.barrier();  // others may still add up those of the norm before
    for (auto [p, last] = worker_.slice(pieces); p < last; ++p) {
      double sum = 0;
      for (Stage& local : stages_.stages) {
        const plan::Range piece = plan::even_range(local.stored, pieces, static_cast<int>(p));
        sum += stages_.sum_of_squares(local, of(local), piece.begin, piece.end);
      }
      memory_.numbers[static_cast<std::size_t>(p)] = sum;
    }
    worker_.barrier();
    if (worker_.index == 0) {
      memory_.shared = 0;
      for (double n : memory_.numbers) memory_.shared += n;
      if (stages_.team->processes > 1) stages_.team->pipeline_link->sum(DeviceSpan<double>(&memory_.shared, 1));
    }
    worker_.barrier();
    return std::sqrt(memory_.shared);
  }
  /// write(call, into) puts it, of a part of a stage's arena, into one array.
  template <class Write> void make_whole(const Write& write) {
    for (Stage& local : stages_.stages) {
      const auto [begin, end] = worker_.slice(local.stored, 16);
      if (begin >= end) continue;
      Scalar* const into = local.executor->gradients().data;
      optim::for_each_range(local.optimizer->ranges(), local.optimizer->complete(local.parameters, of(local), begin, end),
                            [&](const auto& part) { write(part, into); });
    }
    call_.gradient_scale = 1;
    whole_ = true;
    worker_.barrier();
  }
  /// visit(parameter) for those that are this worker's, and waits for the others.
  template <class Visit> void each_tensor(const Visit& visit) {
    for (Stage& local : stages_.stages) {
      const auto entries = local.optimizer->entries();
      for (std::size_t k = 0; k < entries.size(); ++k) {
        if (!optim::is_of_worker(entries[k], plan::Range{0, local.stored}, worker_)) continue;
        optim::visit_tensor(*local.optimizer, k, of(local), local.parameters, local.executor->gradients().data, visit);
      }
    }
    worker_.barrier();
  }

 private:
  optim::StepCall<Scalar> of(Stage& local) const {
    optim::StepCall<Scalar> c = call_;
    c.gradients = &local.gradient;
    return c;
  }

  const Worker& worker_;
  LocalStages& stages_;
  PipelineUpdateMemory& memory_;
  optim::StepCall<Scalar> call_;
  bool whole_ = false, numbers_read_ = false;
};

/// The updates of the stages that a process has.
template <class Model, class Optimizer> class PipelineUpdate {
 public:
  using LocalStages = PipelineLocalStages<Model, Optimizer>;
  using Stage = typename LocalStages::Stage;
  using Scalar = typename Model::Scalar;
  using Sums = nn::LossSums;

  explicit PipelineUpdate(LocalStages& stages) : stages_(stages) {}

  /// Before the first update of a synchronous step: gradients and sums become those of all workers, pipelines and tied twins;
  /// what a chain does before its last pass is done.
  void begin(Workers& workers, const PipelineCall& call, const Sums& own) {
    all_sums_ = own;
    for (Stage& local : stages_.stages) all_sums_ = complete(local, own);
    stages_.tied.exchange_gradients();
    call_ = step_call(call, all_sums_.weight, call.expected_weight, call.step + 1);
    overflowed_ = false;
    constexpr bool in_stages = optim::has_stages<Optimizer>;
    if (call.clip <= 0 && !call.look && !in_stages) return;
    memory_.numbers.assign(PipelineGradient<LocalStages>::pieces, 0);
    workers.run([&](Worker& w) { transform(w, call); });
  }
  /// A stage of a synchronous step, after begin().
  void update(Workers& workers, Stage& local) {
    if (!overflowed_) update(workers, local, call_);
  }
  /// PipeDream: a stage updates by one micro-batch. Returns the sums of that one, over all pipelines.
  Sums update_alone(Workers& workers, Stage& local, const PipelineCall& call, const Sums& own, double expected_weight,
                    int micro) {
    const Sums all = complete(local, own);
    update(workers, local, step_call(call, all.weight, expected_weight, call.step + 1 + micro));
    return all;
  }

  /// The sums of the last synchronous step's batch over all pipelines; and whether that step was skipped.
  const Sums& sums_of_all() const { return all_sums_; }
  bool overflowed() const { return overflowed_; }
  /// The norm of the last step that was clipped.
  double norm() const { return norm_; }

 private:
  void transform(const Worker& w, const PipelineCall& call) {
    PipelineGradient<LocalStages> gradient(w, stages_, memory_, call_);
    if (call.clip > 0 || call.look) {
      const double norm = gradient.norm();  // not finite where a gradient is not
      const bool skip = call.look && !std::isfinite(norm);
      if (w.index == 0) overflowed_ = skip, norm_ = call.clip > 0 ? norm : norm_;
      if (skip) return;
      if (call.clip > 0) gradient.multiply(optim::ClipNorm{static_cast<float>(call.clip)}(norm));
    }
    if constexpr (optim::has_stages<Optimizer>) stages_.optimizer().optimizer().transform_gradient(gradient);
    w.barrier();  // all have read call_
    if (w.index == 0) call_.gradient_scale = gradient.scale();
  }
  /// The gradients of a stage become those of all workers and pipelines; returns the sums behind them.
  Sums complete(Stage& local, const Sums& own) {
    local.executor->reduce_workers();
    const Sums all = over_pipelines(local, own);
    local.gradient = local.executor->gradients().data;
    local.parameters = local.executor->unguarded_parameters().data;
    local.executor->weights_changed();  // said before the update, which may fail in the middle: no pass runs between
    return all;
  }
  /// The gradients of a stage, and the sums behind them, over the pipelines beside each other.
  Sums over_pipelines(Stage& local, const Sums& sums) {
    if (!stages_.team->replica_link) return sums;
    Scalar tail[3] = {static_cast<Scalar>(sums.loss), static_cast<Scalar>(sums.weight), static_cast<Scalar>(sums.correct)};
    const double before = stages_.clock();
    stages_.sum_over_pipelines(local, tail);
    stages_.policy_state.waited += stages_.clock() - before;
    return {static_cast<double>(tail[0]), static_cast<double>(tail[1]), static_cast<double>(tail[2])};
  }
  static optim::StepCall<Scalar> step_call(const PipelineCall& call, double weight, double expected_weight, std::int64_t step) {
    optim::StepCall<Scalar> c;
    c.step = step;
    c.lr = call.lr;
    c.gradient_scale = weight > 0 ? expected_weight / weight / call.loss_scale : 0;
    return c;
  }
  void update(Workers& workers, Stage& local, optim::StepCall<Scalar> c) {
    c.gradients = &local.gradient;
    workers.run([&](Worker& w) {
      const auto [begin, end] = w.slice(local.stored, 16);
      if (begin < end) local.optimizer->update(local.parameters, c, begin, end);
    });
  }

  LocalStages& stages_;
  PipelineUpdateMemory memory_;
  optim::StepCall<Scalar> call_{};
  Sums all_sums_{};
  double norm_ = 0;
  bool overflowed_ = false;
};

}  // namespace skein::inline SKEIN_ABI::parallel::detail
