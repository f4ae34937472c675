// SPDX-License-Identifier: Apache-2.0
// What the stages of a training step work on: the parts that a training has bound together, and the step that is going on.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "../../comm/public_call.hpp"
#include "../../nn/buffer_backup.hpp"
#include "../../nn/executor.hpp"
#include "../../nn/loss/timed.hpp"
#include "../../optim/state.hpp"
#include "../../parallel/concepts.hpp"
#include "curvature.hpp"
#include "step_device.hpp"
#include "update_memory.hpp"

namespace skein::inline SKEIN_ABI::train {

namespace detail {
/// Throws ArgumentError for a placement that the step cannot work with.
void check_placement(const plan::Placement& p, const plan::ArenaTable& table, bool owns_part);
/// A hash of everything of the model that the ranks must have in common. compute: the name of the type of a mixed precision, else
/// empty.
std::uint64_t fingerprint(std::uint64_t model, std::size_t scalar, const Extents& input, std::string_view compute);
}  // namespace detail

/// The parts of one training; it owns all but the model.
template <class Model_, class Loss_, class Optimizer_, class PolicyState_> struct StepParts {
  using Model = Model_;
  using Loss = Loss_;
  using Optimizer = Optimizer_;
  using PolicyState = PolicyState_;
  using Scalar = typename Model::Scalar;
  using Device = typename Model::device;
  using CurvatureOf = detail::CurvatureOf<Optimizer, Model, PolicyState>;
  using Curvature = typename CurvatureOf::State;
  using Executor = skein::Executor<Model, Loss, typename CurvatureOf::Run>;
  using Bound = optim::BoundOptimizer<Optimizer, Scalar, Device>;
  static constexpr long stored = Model::sizes.stored;
  /// Does the policy read the optimizer's state, of frozen parameters too?
  static constexpr bool whole_arrays =
      parallel::OwnsPart<PolicyState> || parallel::ServesUpdates<PolicyState> || parallel::AveragesWeights<PolicyState>;

  template <class Policy> StepParts(Model& m, Loss l, const Optimizer& o, const Policy& policy)
      : model(&m), weights(&m.weights()), loss(std::move(l)), placement(placed(policy)),
        optimizer(o, Model::program, m.where(), placement.own(), whole_arrays), policy_state(bound(policy)),
        device(m.where(), nn::batch_rows<Model, Loss>()) {}

  /// The sums of the batch behind the gradients: of all ranks, after an exchange.
  Scalar* tail() { return model->gradient_arena().data + stored; }
  /// The same on the host, as numbers.
  nn::LossSums sums_of_tail() {
    const Scalar* sum = tail();
    return {static_cast<double>(sum[0]), static_cast<double>(sum[1]), static_cast<double>(sum[2])};
  }
  /// A lap of the step's clock: that of a loss that is nn::Timed. Of another loss nothing.
  void lap(StepPart part) const { nn::lap(loss, part); }
  /// Do ranks have slices of the optimizer's state? All ranks answer alike, also the one whose slice is all of a small arena.
  bool slices_state() const { return placement.kind() == plan::PlacementKind::sliced; }

  Model* model;
  Weights<Scalar, Device>* weights;  ///< the model's: a step asks for them
  Loss loss;
  plan::Placement placement;  ///< who updates what
  Bound optimizer;
  optim::StateUpdates state_updates{};  ///< of a training that was loaded
  PolicyState policy_state;
  StepDevice<Scalar, Device> device;
  std::unique_ptr<Executor> executor{};
  UpdateMemory<Scalar> update_memory{};
  nn::BufferBackup<Scalar, Device, Model::scales_loss, (Model::sizes.buffers > 0)> buffers{};
  [[no_unique_address]] Curvature curvature = make_curvature(*this);  ///< what a chain with Needs::curvature remembers

 private:
  /// Throws ArgumentError for a placement that the step cannot work with: of a policy of the user's.
  template <class Policy> static plan::Placement placed(const Policy& policy) {
    const plan::ArenaTable table{Model::program.parameters(), stored, optim::needs_tensors<Optimizer>};
    plan::Placement p = policy.placement(table);
    detail::check_placement(p, table, parallel::OwnsPart<PolicyState>);
    return p;
  }
  /// Gradients that are not there yet are where the policy wants them.
  template <class Policy> PolicyState bound(const Policy& policy) {
    if constexpr (on_host<Device>) {
      const comm::InPublicCall here(comm::PublicCall::trainer);
      constexpr auto bytes = static_cast<std::size_t>(stored + gradient_tail) * sizeof(Scalar);
      if (const std::shared_ptr<void> memory = policy.gradient_memory(model->has_gradients() ? 0 : bytes))
        model->place_gradients({memory, static_cast<Scalar*>(memory.get())});
    }
    return policy.bind(replica());
  }
  parallel::Replica<Scalar, Device> replica() {
    parallel::Replica<Scalar, Device> r;
    r.parameters = model->weights().unguarded();
    r.gradients = model->gradient_arena();
    r.buffers = model->buffers();
    const bool whole = !slices_state() && optimizer.kept().begin == 0;
    for (int k = 0; whole && k < optimizer.arrays(); ++k) r.state.push_back(optimizer.array(k));
    r.layers = Model::program.layers();
    r.entries = Model::program.parameters();
    r.stored = stored;
    r.first_trained = optimizer.first_trained();
    bool frozen = false;
    for (const optim::ParameterGroupRange& g : optimizer.ranges()) {
      frozen = frozen || g.frozen;
      if (g.frozen) continue;
      if (!r.trained.empty() && r.trained.back().end == g.begin) r.trained.back().end = g.end;  // one call of a collective
      else r.trained.push_back({g.begin, g.end});
    }
    if (!frozen) r.trained.clear();
    else if (r.trained.empty()) r.trained.push_back({0, 0});
    r.placement = placement;
    r.where = model->where();
    std::string_view compute;
    if (Model::precision::mixed) compute = skein::detail::scalar_name<typename Model::precision::compute>();
    r.fingerprint = detail::fingerprint(Model::fingerprint, sizeof(Scalar), Model::input::extents, compute);
    return r;
  }
};

/// One step, the same for all workers.
template <class Parts> struct StepState {
  using View = typename Parts::Executor::View;
  const View* batch = nullptr;
  nn::PassCall call{};
  nn::ExecutorSinks sinks{};
  bool update = true, exchange = false;
  bool look = false;        ///< for gradients that are not finite: with one, nothing is updated
  bool finite = false;      ///< nothing is updated where the loss, or the norm of a clipped gradient, is not finite
  bool agrees = false;      ///< about that with the other ranks, which have losses of their own
  bool left_out = false;    ///< that was so
  std::int64_t number = 1;  ///< of the update, from 1
  double lr = 0;
  double expected_weight = 1;  ///< gradients are sums over samples, divided by it
  double clip = 0;             ///< the norm to clip by; 0: none
  double weight = 0;           ///< of all samples whose gradients the step has; known after the exchange
  nn::LossSums sums{};
};

/// Gradients in which a step looks for what is not finite are this rank's own, or those of some ranks: all are asked.
template <class Parts> bool asks_other_ranks(const Parts& parts, const StepState<Parts>& s) {
  return s.look && s.update && (!s.exchange || Parts::PolicyState::local_sums) && parts.policy_state.ranks() > 1;
}

}  // namespace skein::inline SKEIN_ABI::train

#if !SKEIN_COMPILED
#include "step_parts.ipp"
#endif
