// SPDX-License-Identifier: Apache-2.0
// Staleness<Steps>: how far workers that do not wait for each other may be apart.
#pragma once
#include <concepts>
#include <limits>

#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// The number of a Staleness without a bound.
inline constexpr int unbounded = std::numeric_limits<int>::max();

/// How many steps the fastest worker may run ahead of the slowest (stale synchronous parallel: Ho et al., NIPS 2013). 0: all
/// workers' gradients of a step are one update, which is synchronous SGD.
template <int Steps> struct Staleness {
  constexpr Staleness() = default;  // no aggregate: for clang++ 14, {.servers = 2} would be one
  static_assert(Steps >= 0,
                "Staleness<S> is the number of steps that the fastest worker may run ahead: 0 (synchronous) or more, or "
                "sk::parallel::unbounded");
  static constexpr int bound = Steps;
};

/// A type that says such a bound.
template <class Bound> concept IsStaleness = requires {
  { Bound::bound } -> std::convertible_to<int>;
};

}  // namespace skein::inline SKEIN_ABI::parallel
