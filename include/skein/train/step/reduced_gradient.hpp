// SPDX-License-Identifier: Apache-2.0
// ReducedGradient: the summed gradient of a step as a chain of transforms sees it (optim/transform/chain.hpp): its norm, one
// array of it, tensor by tensor. The same of a pipeline's stages is PipelineGradient (parallel/pipeline/pipeline_update.hpp).
#pragma once
#include <cmath>
#include <span>
#include <utility>

#include "../../core/clock.hpp"
#include "../../optim/transform/visit_tensor.hpp"
#include "worker_step.hpp"

namespace skein::inline SKEIN_ABI::train {

/// What a chain works with: the gradient as one worker sees it. Every worker calls the same in the same order.
template <class Parts> class ReducedGradient {
  using Scalar = typename Parts::Scalar;
  using PolicyState = typename Parts::PolicyState;

 public:
  explicit ReducedGradient(WorkerStep<Parts>& w) : w_(w), memory_(w.parts.update_memory), optimizer_(w.parts.optimizer) {}

  /// Is it one array as it is, of all samples and scaled?
  bool whole() const { return whole_ && w_.call.gradient_scale == 1; }
  void multiply(double factor) { w_.call.gradient_scale *= factor; }
  template <class Transform> void scale_by_norm(const Transform& transform) { multiply(transform.factor(norm())); }
  /// Its norm, of all that is not frozen, over the ranks that own a part.
  double norm() {
    if (std::exchange(numbers_read_, true)) w_.worker.barrier();  // others may still add up those of the norm before
    // Of a gradient that all ranks have: in pieces of the arena, whoever adds them up, or ranks of other threads would drift
    // apart.
    constexpr bool replicas = parallel::SynchronizesGradients<PolicyState> && !parallel::OwnsPart<PolicyState>;
    const bool pieces = PolicyState::virtual_shards > 0 || (replicas && w_.one_array);
    if (pieces) {
      w_.call.gradient_count = 1;
      for (auto [p, last] = w_.worker.slice(optim::norm_pieces); p < last; ++p) {
        const plan::Range piece = plan::even_range(Parts::stored, optim::norm_pieces, static_cast<int>(p));
        memory_.numbers[static_cast<std::size_t>(p)] = optimizer_.sum_of_squares(w_.call, piece.begin, piece.end);
      }
    } else {
      double sum = 0;
      w_.each([&](long begin, long end) { sum += optimizer_.sum_of_squares(w_.call, begin, end); });
      memory_.numbers[static_cast<std::size_t>(w_.worker.index)] = sum;
    }
    w_.worker.barrier();
    double squares = 0;
    for (int i = 0; i < (pieces ? optim::norm_pieces : w_.worker.count); ++i)
      squares += memory_.numbers[static_cast<std::size_t>(i)];
    if constexpr (parallel::OwnsPart<PolicyState>) squares = over_owners(squares);
    const double norm = std::sqrt(squares);
    if (w_.worker.index == 0) memory_.norm = norm;
    return norm;
  }
  /// write(call, into) puts it, of a part of the arena, into one array.
  template <class Write> void make_whole(const Write& write) {
    w_.each_trained(parameters(), [&](const auto& part) { write(part, memory_.summed_gradient); });
    w_.call.gradient_scale = 1;
    w_.one_array = whole_ = true;
    w_.worker.barrier();
  }
  /// The whole gradient becomes what the transform's state makes of it. Where ranks own parts, each gets the others' first.
  template <class Preconditioner> void precondition(const Preconditioner& transform) {
    if constexpr (parallel::OwnsPart<PolicyState>) gather_parts();
    w_.parts.curvature.precondition(w_, transform, memory_.summed_gradient);
  }
  /// visit(parameter) for those of this rank's part that are this worker's, and waits for the others.
  template <class Visit> void each_tensor(const Visit& visit) {
    plan::Range own{0, Parts::stored};
    if constexpr (parallel::OwnsPart<PolicyState>) own = w_.parts.placement.own();
    const plan::Range rows = plan::rows_within(optimizer_.entries(), own);
    for (long k = rows.begin; k < rows.end; ++k) {
      const plan::Entry& e = optimizer_.entries()[static_cast<std::size_t>(k)];
      if (optim::is_of_worker(e, own, w_.worker))
        optim::visit_tensor(optimizer_, static_cast<std::size_t>(k), w_.call, parameters(), memory_.summed_gradient, visit);
    }
    w_.worker.barrier();
  }

 private:
  Scalar* parameters() const { return w_.parts.model->weights().unguarded().data; }
  void gather_parts() {
    if (w_.worker.index == 0) {
      const DeviceSpan<Scalar, Cpu> all{memory_.summed_gradient, static_cast<std::size_t>(Parts::stored)};
      const plan::Range own = w_.parts.placement.own();
      const AddedSeconds waits = w_.parts.curvature.waiting();
      w_.parts.policy_state.gather(all.sub(static_cast<std::size_t>(own.begin), static_cast<std::size_t>(own.end)), all);
    }
    w_.worker.barrier();
  }
  double over_owners(double own) {
    if (w_.worker.index == 0) {
      memory_.shared = own;
      w_.parts.policy_state.sum_over_owners(std::span<double>(&memory_.shared, 1));
    }
    w_.worker.barrier();
    return memory_.shared;
  }

  WorkerStep<Parts>& w_;
  UpdateMemory<Scalar>& memory_;
  const typename Parts::Bound& optimizer_;
  bool whole_ = false, numbers_read_ = false;
};

}  // namespace skein::inline SKEIN_ABI::train
