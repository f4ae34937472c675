// SPDX-License-Identifier: Apache-2.0
// What is a policy: it makes a sound state for a replica, and places the parts that its ranks own. What is none is refused in one
// sentence, and so is a policy state that lacks what it declares, or does not declare what it has.
#pragma once
#include <concepts>
#include <utility>

#include "concepts.hpp"
#include "data/data_parallel_option.hpp"

namespace skein::inline SKEIN_ABI::parallel {

namespace detail {
template <class P> concept OwnPlacement = !requires {
  requires std::same_as<decltype(&P::placement), decltype(&PolicyBase::placement)>;
};
template <class P, class R> using StateOf = decltype(std::declval<const P&>().bind(std::declval<const R&>()));
// Norms of what a rank owns are in the device's memory.
template <class S, class Device> concept SumsWhereItOwns =
    !OwnsPart<S> || std::same_as<Device, Cpu> || HasSumOverOwnersThere<S, Device>;
template <PolicyStateFault First> consteval void assert_synchronizes_as_declared() {
  using F = PolicyStateFault;
  constexpr F fault = First;
  static_assert(fault != F::gradients,
                "a policy state that declares Capability::synchronizes_gradients has bool synchronizes_gradients() const, void "
                "gradient_ready(long begin, long end) and void finish_gradients() of its own: one is missing");
  static_assert(
      fault != F::gradients_of_one,
      "a policy state that declares Capability::synchronizes_gradients says among whom, by int rank() const and int "
      "ranks() const of its own, which one has that derives from CommPolicyState<Comm, Scalar, Device>: else every rank "
      "would train on the whole of each batch");
}
// What is declared and not there; and what is there and not declared.
template <PolicyStateFault First> consteval void assert_has_what_it_declares() {
  using F = PolicyStateFault;
  constexpr F fault = First;
  static_assert(fault != F::averages,
                "a policy state that declares Capability::averages_weights has finish(), after which all ranks have one model, "
                "and after_step() or epoch_ends(), where it averages");
  static_assert(fault != F::drift,
                "a policy state that declares Capability::lets_weights_drift has void weights_agree(), which is called where "
                "another policy has made the ranks' weights one");
  static_assert(
      fault != F::part,
      "a policy state that declares Capability::owns_part has sum_over_owners(std::span<double>) and gather(own, whole); for a "
      "model on a GPU sum_over_owners_there(DeviceSpan<double, Device>) too");
  static_assert(fault != F::statistics,
                "a policy state that declares Capability::reduces_statistics has void reduce_statistics(double* values, long n)");
  static_assert(fault != F::serves,
                "a policy state that declares Capability::serves_updates has bool serves() const and void serve(const "
                "UpdateCallback&), and of PolicyState signal(), set_signal(), updates(), serves_whole_steps");
  static_assert(fault != F::shards,
                "a policy state that declares Capability::sums_shards has virtual_shards of 1 or more and "
                "set_partial_sums(std::vector<Scalar*>)");
  static_assert(
      fault != F::batches,
      "a policy state that declares Capability::shares_batches has int batch_parts() const, int batch_part() const and bool "
      "scores() const");
  static_assert(fault != F::model,
                "a policy state that declares Capability::splits_model declares Capability::shares_batches, too: ranks that have "
                "the parts of one model have one part of a batch together");
  static_assert(fault != F::communicator,
                "a policy state that declares Capability::communicates has comm() const, a communicator");
  static_assert(fault != F::state,
                "a policy state that declares Capability::keeps_state has std::string saved_as() const and template <class "
                "Archive> void serialize(Archive&, unsigned)");
  static_assert(fault != F::inverses,
                "a policy state that declares Capability::shares_inverses has plan::WorkerGrid worker_grid() const, and the "
                "communicators column() and row() of that grid");
}
template <PolicyStateFault First> consteval void assert_declares_what_it_has() {
  using F = PolicyStateFault;
  constexpr F fault = First;
  static_assert(fault != F::gradients_undeclared,
                "a policy state with gradient_ready(), finish_gradients() or synchronizes_gradients() declares "
                "Capability::synchronizes_gradients in its `capabilities`: a Compose asks for that");
  static_assert(
      fault != F::drift_undeclared,
      "a policy state with weights_agree() declares Capability::lets_weights_drift in its `capabilities`: else it would "
      "not hear that another policy has made the ranks' weights one");
  static_assert(fault != F::part_undeclared,
                "a policy state with sum_over_owners(), sum_over_owners_there() or gather() declares Capability::owns_part in "
                "its `capabilities`: else the optimizer would update all parameters on every rank");
  static_assert(fault != F::statistics_undeclared,
                "a policy state with reduce_statistics() declares Capability::reduces_statistics in its `capabilities`: else "
                "layers would use the statistics of one rank");
  static_assert(fault != F::serves_undeclared,
                "a policy state with serves() or serve() declares Capability::serves_updates in its `capabilities`: else its "
                "ranks would train");
  static_assert(
      fault != F::shards_undeclared,
      "a policy state with virtual_shards or set_partial_sums() declares Capability::sums_shards in its `capabilities`");
  static_assert(fault != F::batches_undeclared,
                "a policy state with batch_parts() or batch_part() declares Capability::shares_batches in its `capabilities`: "
                "else a batch would be divided among all ranks");
  static_assert(
      fault != F::communicator_undeclared,
      "a policy state with comm() declares Capability::communicates in its `capabilities`: a Compose checks its groups");
  static_assert(fault != F::state_undeclared,
                "a policy state with serialize() or saved_as() declares Capability::keeps_state in its `capabilities`: else it "
                "would not be saved with the training");
  static_assert(fault != F::inverses_undeclared,
                "a policy state with worker_grid() declares Capability::shares_inverses in `capabilities`");
}
}  // namespace detail

/// What makes a policy state for a replica; where that owns a part, it knows of which, as the optimizer's state is made before,
/// and sums over the owners where the model is.
template <class P, class R> concept Policy = std::derived_from<P, PolicyBase> && requires(const P& p, const R& r) {
  { p.bind(r) } -> IsPolicyState;
} &&(!OwnsPart<detail::StateOf<P, R>> ||
     detail::OwnPlacement<P>)&&detail::SumsWhereItOwns<detail::StateOf<P, R>, typename R::Device>;

/// Refuses, with one sentence, what is no policy for such a replica, and one with a state of which a hook would not be called.
template <class P, class R> consteval void assert_policy() {
  constexpr bool derives = std::derived_from<P, PolicyBase>, binds = requires(const P&p, const R&r) { p.bind(r); };
  constexpr bool is_option = std::derived_from<P, OptionBase>;
  static_assert(!is_option,
                "an option of DataParallel (SyncEvery, GradientWorkers, Compress, Sharded, ...) is no policy: write "
                "DataParallel{world, SyncEvery<4>{}}");
  static_assert(derives || is_option, "a policy derives from parallel::PolicyBase, which answers what it does not say itself");
  static_assert(binds || !derives, "a policy has bind(replica) const, which makes the policy state of one training");
  if constexpr (derives && binds) {
    using State = detail::StateOf<P, R>;
    constexpr detail::PolicyStateFault fault = detail::first_state_fault<State>();
    static_assert(
        fault != detail::PolicyStateFault::hooks,
        "this is no policy state: it derives from parallel::PolicyState, and what it has of that one's functions has the "
        "same arguments and results, such as bool after_step(const StepDone&)");
    detail::assert_synchronizes_as_declared<fault>();
    detail::assert_has_what_it_declares<fault>();
    detail::assert_declares_what_it_has<fault>();
    constexpr bool knows_its_part = !IsPolicyState<State> || !OwnsPart<State> || detail::OwnPlacement<P>;
    static_assert(knows_its_part,
                  "a policy whose state declares Capability::owns_part has plan::Placement placement(const plan::ArenaTable&) "
                  "const too: the optimizer's state is made before there is a policy state");
    constexpr bool sums_there = !IsPolicyState<State> || detail::SumsWhereItOwns<State, typename R::Device>;
    static_assert(
        sums_there,
        "a policy state that owns a part of a model on a GPU has sum_over_owners_there(DeviceSpan<double, Device>) beside "
        "sum_over_owners(std::span<double>): norms of gradients are in the device's memory");
  }
}

}  // namespace skein::inline SKEIN_ABI::parallel
