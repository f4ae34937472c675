// SPDX-License-Identifier: Apache-2.0
// What is a policy: it makes a sound state for a replica, and places the parts that its ranks own.
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
}  // namespace detail

/// What makes a policy state for a replica; where that owns a part, it knows of which, as the optimizer's state is made before.
template <class P, class R> concept Policy = std::derived_from<P, PolicyBase> && requires(const P& p, const R& r) {
  { p.bind(r) } -> IsPolicyState;
} &&(!OwnsPart<detail::StateOf<P, R>> || detail::OwnPlacement<P>);

/// Refuses, with one sentence, what is no policy for such a replica.
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
    assert_policy_state<State>();
    constexpr bool knows_its_part = !IsPolicyState<State> || !OwnsPart<State> || detail::OwnPlacement<P>;
    static_assert(knows_its_part,
                  "a policy whose state declares Capability::owns_part has plan::Placement placement(const plan::ArenaTable&) "
                  "const too: the optimizer's state is made before there is a policy state");
  }
}

}  // namespace skein::inline SKEIN_ABI::parallel
