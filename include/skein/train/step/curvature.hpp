// SPDX-License-Identifier: Apache-2.0
// What a training step has to do with a transform of curvature, such as Kfac: the state that it is made with, when that hears of
// a step, and the ranks that it talks to. A chain without one has NoCurvature, which hears the same and does nothing; no other
// file of a step knows which of the two it is.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "../../comm/op.hpp"
#include "../../core/clock.hpp"
#include "../../core/error.hpp"
#include "../../nn/executor.hpp"
#include "../../nn/kronecker.hpp"
#include "../../optim/state.hpp"
#include "../../parallel/concepts.hpp"
#include "../../plan/curvature_shares.hpp"
#include "overlapped_curvature.hpp"

namespace skein::inline SKEIN_ABI::train {

/// The ranks of a training, as a transform of curvature sees them: all, and those of this rank's column and row in the grid of
/// GradientWorkers. Blocking; worker 0 calls.
template <class PolicyState> struct RanksOfCurvature {
  PolicyState& state;
  double& exposed;  ///< gets the seconds that it has waited

  template <class Scalar> void sum(std::span<Scalar> values) const {
    timed([&] { with_all([&](auto& comm) { comm.all_reduce(there(values), Sum{}); }); });
  }
  /// All values of this column, of which this rank has `own`, counts[r] are of the r-th.
  template <class Scalar>
  void gather_workers(std::span<Scalar> own, std::span<const std::size_t> counts, std::span<Scalar> whole) const {
    timed([&] {
      if constexpr (parallel::SharesInverses<PolicyState>) state.column().all_gather_v(there(own), counts, there(whole));
      else with_all([&](auto& comm) { comm.all_gather_v(there(own), counts, there(whole)); });
    });
  }
  /// All values of this row, gathered likewise.
  template <class Scalar> void gather_receivers([[maybe_unused]] std::span<Scalar> own,
                                                [[maybe_unused]] std::span<const std::size_t> counts,
                                                [[maybe_unused]] std::span<Scalar> whole) const {
    if constexpr (parallel::SharesInverses<PolicyState>)
      timed([&] { state.row().all_gather_v(there(own), counts, there(whole)); });
  }

 private:
  template <class Scalar> static DeviceSpan<Scalar, Cpu> there(std::span<Scalar> s) { return {s.data(), s.size()}; }
  template <class Call> void timed(const Call& call) const {
    const AddedSeconds waits(exposed);
    call();
  }
  /// use(the communicator of all ranks), where there is one.
  template <class Use> void with_all([[maybe_unused]] const Use& use) const {
    if constexpr (parallel::Communicates<PolicyState>) use(state.comm());
    else if constexpr (parallel::forwards_to_parts<PolicyState>)
      if (!state.with_widest_comm(use) && state.ranks() > 1)
        throw ArgumentError(
            "Kfac: the policy of this Compose that has the most ranks has no communicator, by which their factors would be added "
            "up: declare Capability::communicates, or leave Kfac out of the chain");
  }
};

/// Stands for the curvature of an optimizer that collects none.
struct NoCurvature {
  template <class Executor> static constexpr void attach(Executor&) {}
  template <class Parts> static constexpr void begin_step(const Parts&, bool, std::int64_t) {}
  template <class WorkerStep> static constexpr void begin_pass(const WorkerStep&) {}
  template <class Gradients> static constexpr void gradient_ready(long begin, long end, const Gradients& gradients) {
    gradients(begin, end);
  }
  static constexpr void finish_sums() {}
  template <class PolicyState> static constexpr void gather(PolicyState&) {}
  static constexpr void drop() {}
};

/// The state of a chain's transform of curvature, as a step speaks to it. State: what the transform has, optim::KfacState, or
/// OverlappedCurvature of that.
template <class State, bool overlaps> class StepCurvature : public State {
 public:
  using State::State;

  /// Before a step, from 1, which exchanges gradients or does not.
  template <class Parts>
  void begin_step([[maybe_unused]] const Parts& parts, [[maybe_unused]] bool exchanges, [[maybe_unused]] std::int64_t step) {
    if constexpr (overlaps) State::begin_step(parts.optimizer.optimizer().curvature(), exchanges, step);
  }
  /// Every worker, before its forward pass.
  template <class WorkerStep> void begin_pass(const WorkerStep& w) {
    const auto& step = w.step;
    State::begin_pass(w.parts.optimizer.optimizer().curvature(), w.worker, step.number + !step.update,
                      static_cast<long>(step.batch->count), step.call.accumulate);
  }
  /// Gradients [begin, end) are final: gradients(begin, end) is told, in parts and in between the sums that leave with them.
  template <class Gradients> void gradient_ready(long begin, long end, const Gradients& gradients) {
    if constexpr (overlaps) State::gradient_ready(begin, end, gradients);
    else gradients(begin, end);
  }
  /// Worker 0, once backward has ended: what has left is there when this returns.
  void finish_sums() {
    if constexpr (overlaps) State::finish_sums();
  }
  /// Every worker: `gradient`, that of all samples as one array, becomes what the transform makes of it. Where ranks take steps
  /// of their own, the loss whose curvature is taken is the mean of this rank's samples, in every step.
  template <class WorkerStep, class Transform, class Scalar>
  void precondition(const WorkerStep& w, const Transform& transform, Scalar* gradient) {
    using PolicyState = std::remove_cvref_t<decltype(w.parts.policy_state)>;
    const auto& step = w.step;
    using Model = typename std::remove_cvref_t<decltype(w.parts)>::Model;
    const double weight = PolicyState::local_sums ? step.sums.weight : step.weight;
    const double multiplied = Model::scales_loss ? step.call.loss_scale : 1;
    const typename State::Call call{.step = step.number,
                                    .lr = step.lr,
                                    .scale = weight > 0 ? step.expected_weight / (weight * multiplied) : 0,
                                    .own_scale = PolicyState::local_sums,
                                    .gradient = gradient,
                                    .ranges = w.parts.optimizer.ranges()};
    State::precondition(transform, call, w.worker, RanksOfCurvature<PolicyState>{w.parts.policy_state, exposed_});
  }
  /// All ranks, while a training is saved: rank 0 has everything until drop().
  template <class PolicyState> void gather(PolicyState& state) {
    double of_no_step = 0;
    State::gather(RanksOfCurvature<PolicyState>{state, of_no_step});
  }

  /// Seconds that steps have waited for other ranks' factors, inverses and gradients, and those of waiting().
  double exposed_seconds() const {
    if constexpr (overlaps) return exposed_ + State::exposed_seconds();
    else return exposed_;
  }
  /// While it lives, a step waits for what of its gradients other ranks have.
  [[nodiscard]] AddedSeconds waiting() { return AddedSeconds(exposed_); }

 private:
  double exposed_ = 0;
};

namespace detail {
/// What a training has of curvature: its State, and what an executor's Run collects for it.
template <class Optimizer, class Model, class PolicyState> struct CurvatureOf {
  using State = NoCurvature;
  using Run = nn::Run<typename Model::Scalar, typename Model::device, typename Model::Activation>;
};
template <class State, class PolicyState> struct Overlapped { using type = StepCurvature<State, false>; };
template <class State, OverlapsCurvature PolicyState> struct Overlapped<State, PolicyState> {
  using type = StepCurvature<OverlappedCurvature<State, PolicyState>, true>;
};
template <class Optimizer, class Model, class PolicyState>
requires optim::needs_curvature<Optimizer>
struct CurvatureOf<Optimizer, Model, PolicyState> {
  using Alone = typename std::remove_cvref_t<decltype(std::declval<const Optimizer&>().curvature())>::template State<
      typename Model::Scalar>;
  using State = typename Overlapped<Alone, PolicyState>::type;
  using Run = nn::KroneckerRun<typename Model::Scalar, typename Model::device, typename Model::Activation>;
};
}  // namespace detail

/// The state of curvature of a training's parts, whose optimizer and policy state are there.
template <class Parts> typename Parts::Curvature make_curvature([[maybe_unused]] const Parts& parts) {
  using Curvature = typename Parts::Curvature;
  using PolicyState = typename Parts::PolicyState;
  if constexpr (std::same_as<Curvature, NoCurvature>) return {};
  else {
    const auto& state = parts.policy_state;
    plan::RankInGrid here{state.rank(), {state.ranks(), state.ranks()}};
    if constexpr (parallel::SharesInverses<PolicyState>) here.grid = state.worker_grid();
    const auto& layers = Parts::Model::program.layers();
    const auto& transform = parts.optimizer.optimizer().curvature();
    if constexpr (OverlapsCurvature<PolicyState>) return Curvature(state.comm(), layers, transform, here);
    else return Curvature(layers, transform, here);
  }
}

}  // namespace skein::inline SKEIN_ABI::train
