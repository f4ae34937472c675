// SPDX-License-Identifier: Apache-2.0
// The concepts of a policy's state: the hooks that each has, and one concept a capability, which holds where the capability is
// declared and its functions are there; and which of them is missing, has another signature, or is there and was not declared. A
// function is known by its name: one that is misspelled, and no part of what is declared, is not found, nor are overloads,
// templates and static functions of another signature. This is the one place that looks at a type's functions.
#pragma once
#include <concepts>
#include <string>
#include <type_traits>
#include <vector>

#include "../plan/curvature_shares.hpp"
#include "policy.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// The hooks around a step, which PolicyState has as no-ops.
template <class S> concept HasStepHooks = requires(S& s, const S& c, const StepDone& done, std::span<double> sums) {
  s.start();
  s.epoch_begins(std::int64_t{});
  { s.before_step(std::int64_t{}) } -> std::same_as<bool>;
  { s.after_step(done) } -> std::same_as<bool>;
  { s.epoch_ends(std::int64_t{}) } -> std::same_as<bool>;
  { s.finish() } -> std::same_as<bool>;
  { c.synchronizes_gradients() } -> std::same_as<bool>;
  s.gradient_ready(0L, 0L);
  s.finish_gradients();
  { c.gradient_factor() } -> std::same_as<double>;
  { c.serves() } -> std::same_as<bool>;
  s.before_save();
  s.forget();
  s.average_buffers();
  s.reduce(sums);
  s.barrier();
  { s.numbers_of_all(std::span<const std::uint64_t>{}) } -> std::same_as<std::vector<std::uint64_t>>;
  { s.texts_of_all(std::string{}) } -> std::same_as<std::vector<std::string>>;
  { c.rank_names() } -> std::same_as<comm::RankNames>;
  { s.part_not_finite() } -> std::same_as<std::string>;
  { c.same_weights() } -> std::same_as<SameWeights>;
  { c.all_met() } -> std::same_as<bool>;
  c.check();
  s.replayed();
};
/// What is asked of it that is no hook: who the ranks are, what was waited for, and what it is.
template <class S> concept HasRanks = requires(const S& c) {
  { c.rank() } -> std::same_as<int>;
  { c.ranks() } -> std::same_as<int>;
  { c.local_ranks() } -> std::same_as<int>;
  { c.threads_of_one_process() } -> std::same_as<bool>;
  { c.exposed_seconds() } -> std::same_as<double>;
  { S::capabilities } -> std::convertible_to<Capabilities>;
  { S::local_sums } -> std::convertible_to<bool>;
  { S::simulated_time } -> std::convertible_to<bool>;
  { S::capturable } -> std::convertible_to<bool>;
  { S::virtual_shards } -> std::convertible_to<int>;
};

namespace detail {
template <Capability C, class S> inline constexpr bool declares = S::capabilities.has(C);

template <class Member> struct ClassOf;
template <class C, class F> struct ClassOf<F C::*> { using type = C; };
template <class Member> concept NoOp = std::same_as<typename ClassOf<Member>::type, PolicyState>;
// It has a function of its own, not the no-op of PolicyState.
template <class S> concept OwnReady = !requires { requires NoOp<decltype(&S::gradient_ready)>; };
template <class S> concept OwnFinishGradients = !requires { requires NoOp<decltype(&S::finish_gradients)>; };
template <class S> concept OwnSynchronizes = !requires { requires NoOp<decltype(&S::synchronizes_gradients)>; };
template <class S> concept OwnRanks = !requires { requires NoOp<decltype(&S::rank)> || NoOp<decltype(&S::ranks)>; };
template <class S> concept OwnFinish = !requires { requires NoOp<decltype(&S::finish)>; };
template <class S> concept OwnAfterStep = !requires { requires NoOp<decltype(&S::after_step)>; };
template <class S> concept OwnEpochEnds = !requires { requires NoOp<decltype(&S::epoch_ends)>; };
template <class S> concept OwnServes = !requires { requires NoOp<decltype(&S::serves)>; };
template <class S> concept OwnServe = requires(S& s, const UpdateCallback& update) { s.serve(update); }
&&!requires { requires NoOp<decltype(&S::serve)>; };

/// Whoever saves, as serialize() sees it.
struct AnyArchive {
  struct is_saving {
    static constexpr bool value = true;
  };
  struct is_loading {
    static constexpr bool value = false;
  };
};

// The functions of the capabilities. PolicyState has no-ops of those of HasServerSignals, of the others none.
template <class S> concept HasWeightsAgree = requires(S& s) { s.weights_agree(); };
template <class S> concept HasGather = requires(S& s) { &S::gather; };
template <class S> concept HasSumOverOwners = requires(S& s, std::span<double> sums) { s.sum_over_owners(sums); };
template <class S, class Device> concept HasSumOverOwnersThere = requires(S& s, DeviceSpan<double, Device> sums) {
  s.sum_over_owners_there(sums);
};
template <class S> concept HasReduceStatistics = requires(S& s, double* values) { s.reduce_statistics(values, 0L); };
template <class S> concept HasPartialSums = requires { &S::set_partial_sums; };
template <class S> concept HasBatchShares = requires(const S& c) {
  { c.batch_parts() } -> std::same_as<int>;
  { c.batch_part() } -> std::same_as<int>;
  { c.scores() } -> std::same_as<bool>;
};
template <class S> concept HasComm = requires(const S& c) {
  { c.comm().size() } -> std::same_as<int>;
};
template <class S> concept HasSerialize = requires(S& s, AnyArchive& archive) { s.serialize(archive, 0u); };
template <class S> concept HasSavedAs = requires(const S& c) {
  { c.saved_as() } -> std::same_as<std::string>;
};
template <class S> concept HasServerSignals = requires(S& s, const S& c) {
  { c.signal() } -> std::same_as<int>;
  s.set_signal(c.signal());
  { c.updates() } -> std::same_as<std::int64_t>;
  { S::serves_whole_steps } -> std::convertible_to<bool>;
};
template <class S> concept HasWorkerGrid = requires(S& s, const S& c) {
  { c.worker_grid() } -> std::same_as<plan::WorkerGrid>;
  s.column().size();
  s.row().size();
};

// Names of these, of any signature: what has one and does not declare the capability has meant it.
template <class Member> concept Function = std::is_member_function_pointer_v<Member>;
template <class S> concept NamesWeightsAgree = requires { requires Function<decltype(&S::weights_agree)>; };
template <class S> concept NamesSumOverOwners = requires { requires Function<decltype(&S::sum_over_owners)>; }
|| requires { requires Function<decltype(&S::sum_over_owners_there)>; };
template <class S> concept NamesReduceStatistics = requires { requires Function<decltype(&S::reduce_statistics)>; };
template <class S> concept NamesBatchParts = requires { requires Function<decltype(&S::batch_parts)>; }
|| requires { requires Function<decltype(&S::batch_part)>; };
template <class S> concept NamesSavedAs = requires { requires Function<decltype(&S::saved_as)>; };
template <class S> concept NamesWorkerGrid = requires { requires Function<decltype(&S::worker_grid)>; };
}  // namespace detail

/// Its gradients become the sums over ranks: a Compose has one such policy at most.
template <class S> concept SynchronizesGradients = detail::declares<Capability::synchronizes_gradients, S> &&
    detail::OwnSynchronizes<S> && detail::OwnReady<S> && detail::OwnFinishGradients<S>;
/// After finish() all ranks have one model.
template <class S> concept AveragesWeights = detail::declares<Capability::averages_weights, S> && detail::OwnFinish<S> &&
    (detail::OwnAfterStep<S> || detail::OwnEpochEnds<S>);
/// Ranks' weights differ between its exchanges, and it hears where another policy has made them one.
template <class S> concept LetsWeightsDrift = detail::declares<Capability::lets_weights_drift, S> && detail::HasWeightsAgree<S>;
/// Each rank has the optimizer's state of a part of the parameters.
template <class S> concept OwnsPart =
    detail::declares<Capability::owns_part, S> && detail::HasSumOverOwners<S> && detail::HasGather<S>;
/// Layers get sums over the ranks within a step.
template <class S> concept ReducesStatistics =
    detail::declares<Capability::reduces_statistics, S> && detail::HasReduceStatistics<S>;
/// Some ranks keep the weights and do not train.
template <class S> concept ServesUpdates =
    detail::declares<Capability::serves_updates, S> && detail::OwnServes<S> && detail::OwnServe<S> && detail::HasServerSignals<S>;
/// It adds up the gradients of virtual shards.
template <class S>
concept SumsShards = detail::declares<Capability::sums_shards, S> &&(S::virtual_shards > 0) && detail::HasPartialSums<S>;
/// Several ranks have one part of a batch together.
template <class S> concept SharesBatches = detail::declares<Capability::shares_batches, S> && detail::HasBatchShares<S>;
/// The ranks that have one part of a batch together have one model together, too: each has its stages of it.
template <class S> concept SplitsModel = detail::declares<Capability::splits_model, S> && SharesBatches<S>;
/// Something of it is saved with the training.
template <class S> concept KeepsState =
    detail::declares<Capability::keeps_state, S> && detail::HasSerialize<S> && detail::HasSavedAs<S>;

/// Each rank has the inverses of some layers' curvature, and gets the preconditioned gradients of the others from its row.
template <class S> concept SharesInverses = detail::declares<Capability::shares_inverses, S> && detail::HasWorkerGrid<S>;

/// It has a communicator, whose groups nest within those of other policies.
template <class S> concept Communicates = detail::declares<Capability::communicates, S> && detail::HasComm<S>;

/// A policy state: all hooks, and what it declares is there. What wraps others (Compose) has all hooks, but answers for its
/// parts.
template <class S> inline constexpr bool forwards_to_parts = false;

namespace detail {
enum class PolicyStateFault {
  none,
  hooks,
  gradients,
  gradients_undeclared,
  gradients_of_one,
  averages,
  drift,
  drift_undeclared,
  part,
  part_undeclared,
  statistics,
  statistics_undeclared,
  serves,
  serves_undeclared,
  shards,
  shards_undeclared,
  batches,
  batches_undeclared,
  model,
  communicator,
  communicator_undeclared,
  state,
  state_undeclared,
  inverses,
  inverses_undeclared,
};
/// What is declared and not there; and what is there and not declared.
template <class S> consteval PolicyStateFault first_declared_fault() {
  using F = PolicyStateFault;
  if (declares<Capability::synchronizes_gradients, S> && !SynchronizesGradients<S>) return F::gradients;
  if (declares<Capability::synchronizes_gradients, S> && !OwnRanks<S>) return F::gradients_of_one;
  if (declares<Capability::averages_weights, S> && !AveragesWeights<S>) return F::averages;
  if (declares<Capability::lets_weights_drift, S> && !LetsWeightsDrift<S>) return F::drift;
  if (declares<Capability::owns_part, S> && !OwnsPart<S>) return F::part;
  if (declares<Capability::reduces_statistics, S> && !ReducesStatistics<S>) return F::statistics;
  if (declares<Capability::serves_updates, S> && !ServesUpdates<S>) return F::serves;
  if (declares<Capability::sums_shards, S> && !SumsShards<S>) return F::shards;
  if (declares<Capability::shares_batches, S> && !SharesBatches<S>) return F::batches;
  if (declares<Capability::splits_model, S> && !SplitsModel<S>) return F::model;
  if (declares<Capability::communicates, S> && !Communicates<S>) return F::communicator;
  if (declares<Capability::keeps_state, S> && !KeepsState<S>) return F::state;
  if (declares<Capability::shares_inverses, S> && !SharesInverses<S>) return F::inverses;
  return F::none;
}
template <class S> consteval PolicyStateFault first_undeclared() {
  using F = PolicyStateFault;
  if (forwards_to_parts<S>) return F::none;
  constexpr bool gradients = OwnReady<S> || OwnFinishGradients<S> || OwnSynchronizes<S>;
  if (gradients && !declares<Capability::synchronizes_gradients, S>) return F::gradients_undeclared;
  if ((HasWeightsAgree<S> || NamesWeightsAgree<S>)&&!declares<Capability::lets_weights_drift, S>) return F::drift_undeclared;
  if ((HasSumOverOwners<S> || NamesSumOverOwners<S> || HasGather<S>)&&!declares<Capability::owns_part, S>)
    return F::part_undeclared;
  if ((HasReduceStatistics<S> || NamesReduceStatistics<S>)&&!declares<Capability::reduces_statistics, S>)
    return F::statistics_undeclared;
  if ((OwnServes<S> || OwnServe<S>)&&!declares<Capability::serves_updates, S>) return F::serves_undeclared;
  if ((HasPartialSums<S> || S::virtual_shards != 0) && !declares<Capability::sums_shards, S>) return F::shards_undeclared;
  if ((HasBatchShares<S> || NamesBatchParts<S>)&&!declares<Capability::shares_batches, S>) return F::batches_undeclared;
  if (HasComm<S> && !declares<Capability::communicates, S>) return F::communicator_undeclared;
  if ((HasSerialize<S> || HasSavedAs<S> || NamesSavedAs<S>)&&!declares<Capability::keeps_state, S>) return F::state_undeclared;
  if ((HasWorkerGrid<S> || NamesWorkerGrid<S>)&&!declares<Capability::shares_inverses, S>) return F::inverses_undeclared;
  return F::none;
}
template <class S> consteval PolicyStateFault first_state_fault() {
  if constexpr (!HasStepHooks<S> || !HasRanks<S>) return PolicyStateFault::hooks;
  else if constexpr (first_declared_fault<S>() != PolicyStateFault::none) return first_declared_fault<S>();
  else return first_undeclared<S>();
}
}  // namespace detail

/// It has all hooks, has what it declares, and declares what it has.
template <class S> concept IsPolicyState = detail::first_state_fault<S>()
== detail::PolicyStateFault::none;

}  // namespace skein::inline SKEIN_ABI::parallel
