// SPDX-License-Identifier: Apache-2.0
// What workers and servers of a ParameterServer say to each other, which part of the parameters is whose, and the options of
// both.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>

#include "../../device/span.hpp"
#include "../../plan/placement.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// As a bound of staleness: none.
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

/// The step size of a gradient that is late: the optimizer's, or that divided by the number of updates that were made since its
/// weights were pulled (Zhang et al., "Staleness-aware Async-SGD", IJCAI 2016).
enum class LateRate { constant, divided };

/// Who serves, and what a late gradient counts.
struct ParameterServerOptions {
  int servers = 1;                     ///< the last ranks of the communicator; each has a shard of the parameters
  LateRate rate = LateRate::constant;  ///< no effect with Staleness<0>, where nothing is late
};

/// What a fit's servers did: of the first of them, known to all ranks when the fit has ended.
struct ServerReport {
  double updates = 0;                            ///< of the parameters; with Staleness<0> one a step, else one a gradient
  double mean_staleness = 0, max_staleness = 0;  ///< updates of others between a worker's pull and its push
  double max_ahead = 0;                          ///< steps of the fastest worker before the slowest's, at most
  double busy = 0, seconds = 0;                  ///< seconds that the server worked, of those that the fit took
};

namespace detail {
template <class T> DeviceSpan<T> piece(DeviceSpan<T> all, const plan::Range& r) {
  return all.sub(static_cast<std::size_t>(r.begin), static_cast<std::size_t>(r.end));
}
struct ServerMessage {
  enum Kind : std::int32_t { Push, Pull, State, Done };
  static constexpr int tag = 31900, values_tag = 31901, reply_tag = 31902, reply_values_tag = 31903;

  std::int32_t kind = Push, worker = 0;
  std::int64_t step = 0, version = 0;  // of the worker (Done: the signal that ended its fit); updates that its weights had seen
  double expected_weight = 1, weight = 0;  // gradients are sums over samples of that weight in all, divided by expected_weight
};
struct ServerReply {
  std::int64_t version = 0, signal = 0;  // that the server has got
};
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::parallel
