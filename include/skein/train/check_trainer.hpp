// SPDX-License-Identifier: Apache-2.0
// Do a trainer's parts fit: the loss, the optimizer, the policy's communicator on the model's device. Found by value; the
// first that does not is named by one static_assert, and nothing else of the trainer is instantiated.
#pragma once
#include <concepts>

#include "../comm/concepts.hpp"
#include "../data/dataset.hpp"
#include "../nn/check_model.hpp"
#include "../parallel/check_policy.hpp"
#include "train_step.hpp"

namespace skein::inline SKEIN_ABI::train::detail {

/// What stands for a loss or an optimizer that was not given: see the deduction guides of Trainer.
struct Missing {};
/// What stands for a communicator where a policy belongs; it copies none, since not all can be copied.
template <class Comm> struct NotAPolicy {
  NotAPolicy() = default;
  NotAPolicy(const Comm&) {}
};
template <class T> inline constexpr bool is_communicator = Communicator<T>;
template <class Comm> inline constexpr bool is_communicator<NotAPolicy<Comm>> = true;

enum class Part { none, model, missing, swapped, policy_third, loss, optimizer, outputs, device, communicator, policy };
template <class Model> using ReplicaOf = parallel::Replica<typename Model::Scalar, typename Model::device>;
template <class Loss, class Optimizer, class Policy, class Model> consteval Part fault_beside_model() {
  if (std::same_as<Loss, Missing> || std::same_as<Optimizer, Missing>) return Part::missing;
  if constexpr (!nn::Loss<Loss>) return optim::Optimizer<Loss> && nn::Loss<Optimizer> ? Part::swapped : Part::loss;
  if (std::derived_from<Optimizer, parallel::PolicyBase>) return Part::policy_third;
  if (!optim::Optimizer<Optimizer>) return Part::optimizer;
  if (!nn::fits_loss<typename Model::network, Loss>()) return Part::outputs;
  if constexpr (std::derived_from<Policy, parallel::PolicyBase>)
    if constexpr (!Policy::template fits<typename Model::device>) return Part::device;
    else return parallel::Policy<Policy, ReplicaOf<Model>> ? Part::none : Part::policy;
  else return is_communicator<Policy> ? Part::communicator : Part::policy;
}
template <class Loss, class Optimizer, class Policy, class Model> consteval Part first_fault() {
  if constexpr (nn::takes_part<Model>) return fault_beside_model<Loss, Optimizer, Policy, Model>();
  else return Part::model;
}
template <class Model, class Loss, class Optimizer, class Policy>
inline constexpr bool is_refused = first_fault<Loss, Optimizer, Policy, Model>() != Part::none;
template <class Optimizer, class Loss> inline constexpr bool stand_in_order = false;
template <class Model> inline constexpr bool outlives_its_trainer = false;
template <class X, class Y> inline constexpr bool is_one_data_set = false;
template <class... Options> inline constexpr bool have_names = false;
template <class X, class Y> consteval void assert_one_data_set() {
  if constexpr (data::Dataset<Y>)
    static_assert(is_one_data_set<X, Y>,
                  "the data that fit evaluates after each epoch is an option: trainer.fit(train, {.epochs = 5, .batch = 32, "
                  ".validate = test})");
  else
    static_assert(
        is_one_data_set<X, Y>,
        "fit takes one data set of samples and targets: trainer.fit(sk::data::from_tensors(x, y), {.epochs = 5, .batch = "
        "32})");
}
template <Part P, class Loss, class Optimizer, class Policy, class Model> constexpr bool assert_trainer() {
  if constexpr (P == Part::model) nn::assert_model<Model>();
  else if constexpr (P == Part::missing)
    static_assert(!std::same_as<Optimizer, Missing>,
                  "a trainer needs a loss and an optimizer: Trainer{model, nn::CrossEntropy{}, optim::Adam{.lr = 1e-3f}}");
  else if constexpr (P == Part::swapped)
    static_assert(stand_in_order<Loss, Optimizer>,
                  "the optimizer stands where the loss belongs: write Trainer{model, loss, optimizer, policy}");
  else if constexpr (P == Part::policy_third)
    static_assert(stand_in_order<Optimizer, Policy>,
                  "the policy stands where the optimizer belongs: write Trainer{model, loss, optimizer, policy}");
  else if constexpr (P == Part::loss) nn::assert_loss<Loss>();
  else if constexpr (P == Part::optimizer) optim::assert_optimizer<Optimizer>();
  else if constexpr (P == Part::outputs) nn::assert_outputs<typename Model::network, Loss>();
  else if constexpr (P == Part::device) Policy::template assert_fits<typename Model::device>();
  else if constexpr (P == Part::communicator)
    static_assert(!is_communicator<Policy>,
                  "a communicator is no policy, which says what its ranks exchange: Trainer{model, loss, optimizer, "
                  "DataParallel{world}}");
  else if constexpr (P == Part::policy) parallel::assert_policy<Policy, ReplicaOf<Model>>();
  return true;
}
template <class Policy> using StepPolicy = typename parallel::StepPolicyOf<Policy>::type;
template <class M, class L, class O, class Policy> struct TrainStepOf { using type = TrainStep<M, L, O, StepPolicy<Policy>>; };
/// A policy may bring a train step of its own: see the concept IsTrainStep. (It is not asserted here: of one that refuses its
/// parts, by a sentence of its own, the compiler would speak twice.)
template <class M, class L, class O, class Policy>
requires(Policy::brings_train_step) struct TrainStepOf<M, L, O, Policy> {
  using type = typename Policy::template TrainStep<M, L, O>;
};

}  // namespace skein::inline SKEIN_ABI::train::detail
