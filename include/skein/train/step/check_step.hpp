// SPDX-License-Identifier: Apache-2.0
// Do model, optimizer and policy go together in one step: found by value, the first that does not is named by one static_assert.
#pragma once
#include <concepts>
#include <span>

#include "../../device/device.hpp"
#include "../../optim/transform/transform.hpp"
#include "../../parallel/concepts.hpp"
#include "../../plan/program.hpp"

namespace skein::inline SKEIN_ABI::train {

/// What a step of these parts could not do.
enum class StepFault {
  none,
  shards_on_device,       ///< virtual shards, and a model on a GPU
  states_of_sequences,    ///< layers that carry their state from batch to batch
  shards_couple_samples,  ///< virtual shards, and layers that couple the samples of a batch
  servers_on_device,      ///< a rank that serves, and a model on a GPU
  norms_of_servers,       ///< a transform that is given a norm, and servers that have no whole gradient
  curvature_of_policy,    ///< a transform of curvature, and a policy whose ranks do not make the same steps together
  curvature_of_drifted,   ///< gradient workers, and ranks that take steps by their own gradients
  workers_of_nothing,     ///< gradient workers, and no transform of curvature
  curvature_on_device,    ///< a transform of curvature, and a model on a GPU
  curvature_of_nothing,   ///< a transform of curvature, and no layer that has factors
  tensors_on_device,      ///< a transform of the host's tensors, and a model on a GPU
};

/// May a transform of curvature be in a chain under this policy: one rank, whose state is the plain one, or ranks that all make
/// the same steps, so that their factors are added up in the same ones.
template <class S> inline constexpr bool collects_curvature = std::same_as<S, parallel::PolicyState> ||
                                                              ((parallel::Communicates<S> ||
                                                                parallel::forwards_to_parts<S>)&&!parallel::ServesUpdates<S> &&
                                                               !parallel::SplitsModel<S> && S::virtual_shards == 0);
/// Has one of the layers Kronecker factors.
constexpr bool has_factors(std::span<const plan::LayerNode> layers) {
  for (const plan::LayerNode& layer : layers)
    if (layer.curvature[0].a > 0 && !layer.curvature[0].unit_wise) return true;
  return false;
}

/// The first fault of a step.
template <class Model, class Optimizer, class PolicyState> consteval StepFault step_fault() {
  constexpr bool host = on_host<typename Model::device>, serves = parallel::ServesUpdates<PolicyState>;
  if (PolicyState::virtual_shards > 0 && !host) return StepFault::shards_on_device;
  if (Model::sizes.carries_state) return StepFault::states_of_sequences;
  if (PolicyState::virtual_shards > 0 && Model::sizes.couples_batch) return StepFault::shards_couple_samples;
  if (serves && !host) return StepFault::servers_on_device;
  if constexpr (serves)
    if (!PolicyState::serves_whole_steps && optim::needs_norms<Optimizer>) return StepFault::norms_of_servers;
  if (parallel::SharesInverses<PolicyState> && !optim::needs_curvature<Optimizer>) return StepFault::workers_of_nothing;
  if constexpr (optim::needs_curvature<Optimizer>) {
    if (!host) return StepFault::curvature_on_device;
    if (!collects_curvature<PolicyState>) return StepFault::curvature_of_policy;
    if (parallel::SharesInverses<PolicyState> && PolicyState::local_sums) return StepFault::curvature_of_drifted;
    if (!has_factors(Model::program.layers())) return StepFault::curvature_of_nothing;
  }
  return !host && optim::needs_host_tensors<Optimizer> ? StepFault::tensors_on_device : StepFault::none;
}

/// Refuses, with one sentence, parts that do not go together.
template <class Model, class Optimizer, class PolicyState> consteval void assert_step() {
  constexpr StepFault fault = step_fault<Model, Optimizer, PolicyState>();
  static_assert(fault != StepFault::shards_on_device,
                "Reproducible is for the host: kernels and libraries of a GPU do not promise the same bits");
  static_assert(fault != StepFault::states_of_sequences,
                "a network with Stateful layers is trained by a loop by hand, Executor and BoundOptimizer, that gives it the "
                "sequences in their order: fit shuffles them, and validates in between");
  static_assert(fault != StepFault::shards_couple_samples,
                "Reproducible: a virtual shard is a batch of its own, and batch normalization would take its statistics from "
                "that: use LayerNorm in its place, or DataParallel without Reproducible");
  static_assert(fault != StepFault::servers_on_device,
                "ParameterServer is for the host: a server updates weights in the host's memory");
  static_assert(fault != StepFault::norms_of_servers,
                "ParameterServer: servers update by each rank's gradients as they come, in an order of their own, so that nobody "
                "has the norm of a whole gradient (ClipNorm): take Staleness<0>, or transforms of elements and tensors");
  static_assert(
      fault != StepFault::workers_of_nothing,
      "GradientWorkers says which ranks keep the inverses of Kfac, and there is no Kfac in this optimizer's chain: leave "
      "the option out");
  static_assert(fault != StepFault::curvature_on_device,
                "Kfac is for the host so far: a GPU's layers do not hand over their factors, and cuSOLVER is not there");
  static_assert(fault != StepFault::curvature_of_policy,
                "Kfac needs ranks that all make the same steps, each with a batch of its own: take DataParallel without "
                "Reproducible, ModelAverage or one rank, not ParameterServer, or leave Kfac out of the chain");
  static_assert(fault != StepFault::curvature_of_drifted,
                "GradientWorkers: a layer's workers precondition the gradient of all ranks, and under SyncEvery each rank takes "
                "steps by its own: leave this option out, then every rank preconditions all layers");
  static_assert(fault != StepFault::curvature_of_nothing,
                "Kfac: no layer of this network has Kronecker factors (Linear, convolutions of one group, Rnn, Lstm and "
                "Gru have them)");
  static_assert(fault != StepFault::tensors_on_device,
                "on a GPU a transform of tensors is given the device's: let its tensor() take them, as void tensor(const auto& "
                "parameter) const or by template <class S, class Device> and const TensorUpdate<S, Device>&");
}

}  // namespace skein::inline SKEIN_ABI::train
