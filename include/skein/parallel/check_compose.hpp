// SPDX-License-Identifier: Apache-2.0
// What Compose checks: which capabilities of its policies go together, by type, and whether the groups of their communicators
// nest, by value.
#pragma once
#include <algorithm>
#include <concepts>
#include <string>
#include <type_traits>
#include <vector>

#include "concepts.hpp"

namespace skein::inline SKEIN_ABI::parallel::detail {

/// What a capability of a part is in a Compose. Each has its line: a capability without one does not compile.
enum class InCompose { kept, of_parts, refused };
constexpr InCompose in_compose(Capability c) {
  switch (c) {
    case Capability::synchronizes_gradients:
    case Capability::averages_weights:
    case Capability::lets_weights_drift:
    case Capability::reduces_statistics:
    case Capability::keeps_state:
      return InCompose::kept;
    case Capability::communicates:
      return InCompose::of_parts;
    case Capability::owns_part:  // they fix what every rank has after each step
    case Capability::serves_updates:
    case Capability::sums_shards:
    case Capability::shares_batches:
    case Capability::splits_model:
    case Capability::shares_inverses:  // of one gradient
      return InCompose::refused;
  }
  throw "a capability without a line in in_compose()";
}
/// Everything that is not refused, of all parts.
template <class... S> consteval Capabilities composed_capabilities() {
  Capabilities all;
  for (unsigned i = 0; i < capability_count; ++i) {
    const Capability c{i};
    if (in_compose(c) == InCompose::kept && (S::capabilities.has(c) || ...)) all = all | Capabilities{c};
  }
  return all;
}
template <class... S> consteval bool any_refused() {
  for (unsigned i = 0; i < capability_count; ++i)
    if (in_compose(Capability{i}) == InCompose::refused && (S::capabilities.has(Capability{i}) || ...)) return true;
  return false;
}
template <class P> inline constexpr bool is_policy = std::derived_from<P, PolicyBase>;
template <class P> using PolicyOrRefused = std::conditional_t<is_policy<P>, P, RefusedPolicy>;
template <class P> inline constexpr bool trains_with_others =
    !std::derived_from<P, SingleProcess> || std::derived_from<P, RefusedPolicy>;
template <int N> inline constexpr bool at_most_one = N <= 1;
template <int N> inline constexpr bool several_policies = N >= 1;
/// Refuses, with one sentence, what cannot be a part of a Compose.
template <class... Policies> consteval bool assert_policies() {
  static_assert(several_policies<sizeof...(Policies)>,
                "Compose takes the policies that are to be composed: give it at least one");
  static_assert((is_policy<Policies> && ...),
                "Compose takes policies, and one of these is none: an option (SyncEvery, GradientWorkers, Compress, ...) belongs "
                "into its DataParallel, as in Compose{DataParallel{world, SyncEvery<4>{}}, ModelAverage{world, Period<100>{}}}");
  static_assert((trains_with_others<Policies> && ...),
                "Compose: SingleProcess and Alone train one process by itself, and have no part in what the ranks of another "
                "policy agree on: leave them out");
  return true;
}
template <class... S> inline constexpr bool keep_whole_replicas = !any_refused<S...>();

/// The groups of a level, as the ranks of the widest communicator see them: for each rank, who leads its group and how large that
/// is.
struct GroupMembership {
  int leader = 0, size = 1;
};

/// What is wrong with the groups of level `inner`; empty where each lies within one group of level `outer`, and all of it in the
/// world. Without an outer level only the latter is asked.
inline std::string group_fault(const std::vector<GroupMembership>& inner, const std::vector<GroupMembership>& outer) {
  const int n = static_cast<int>(inner.size());
  for (int r = 0; r < n; ++r) {
    const GroupMembership& own = inner[static_cast<std::size_t>(r)];
    int members = 0;
    for (int q = 0; q < n; ++q) {
      const bool same = inner[static_cast<std::size_t>(q)].leader == own.leader;
      members += same;
      if (same && !outer.empty() && outer[static_cast<std::size_t>(q)].leader != outer[static_cast<std::size_t>(r)].leader)
        return text("ranks {} and {} share a group of {}, but not the wider group of {}", std::min(q, r), std::max(q, r),
                    own.size, outer[static_cast<std::size_t>(r)].size);
    }
    if (members != own.size)
      return text("the group of {} that rank {} is in has {} of the widest communicator's {} ranks", own.size, r, members, n);
  }
  return {};
}

/// The first fault of several levels, which are given in any order: one is within the next, whose groups are wider.
inline std::string nesting_fault(std::vector<std::vector<GroupMembership>> levels) {
  const auto widest = [](const std::vector<GroupMembership>& level) {
    int most = 0;
    for (const GroupMembership& group : level) most = std::max(most, group.size);
    return most;
  };
  std::stable_sort(levels.begin(), levels.end(), [&](const auto& a, const auto& b) { return widest(a) < widest(b); });
  for (std::size_t i = 0; i < levels.size(); ++i)
    if (std::string fault = group_fault(levels[i], i + 1 < levels.size() ? levels[i + 1] : std::vector<GroupMembership>{});
        !fault.empty())
      return fault;
  return {};
}

}  // namespace skein::inline SKEIN_ABI::parallel::detail
