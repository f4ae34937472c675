// SPDX-License-Identifier: Apache-2.0
// The bodies of group.hpp.
#pragma once
#include <utility>

#include "group.hpp"

namespace skein::inline SKEIN_ABI::comm {

SKEIN_INLINE SimCall& SimGroup::begun(std::uint64_t number) {
  const std::size_t n = members.size();
  while (first + calls.size() <= number) {
    SimCall next;
    next.posts.resize(n);
    next.entered.assign(n, 0);
    next.left.assign(n, 0);
    calls.push_back(std::move(next));
  }
  return call(number);
}

SKEIN_INLINE void SimGroup::taken(std::uint64_t number) {
  if (number < first) return;
  ++call(number).taken;
  while (!calls.empty() && static_cast<std::size_t>(calls.front().taken) == members.size()) {
    calls.pop_front();
    ++first;
  }
}

SKEIN_INLINE plan::AllReduceChoice SimGroup::all_reduce_choice(const SimOptions& options, int world, double bytes) const {
  const int n = static_cast<int>(members.size());
  plan::Network network = options.network;
  if (n != world) {
    bool together = true;
    for (const int m : members) together = together && network.together(m, members[0]);
    const plan::Level level = together ? network.near : network.far;
    network = {level, level, 0, network.gamma};
  }
  if (!options.algorithm) return plan::cheapest_all_reduce(network, n, bytes);
  return {*options.algorithm, plan::torus_columns(network, n), network.node > 0 ? network.node : n, 0};
}

}  // namespace skein::inline SKEIN_ABI::comm
