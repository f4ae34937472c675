// SPDX-License-Identifier: Apache-2.0
// The bodies of delayed.hpp.
#pragma once
#include "delayed.hpp"

namespace skein::inline SKEIN_ABI {

SKEIN_INLINE SlowNetwork::SlowNetwork(plan::Network links, double collective) : links_(links), collective_(collective) {
  comm::check_links("SlowNetwork", links);
  comm::check_links("SlowNetwork", {.near = {collective, 0}});
}

SKEIN_INLINE double SlowNetwork::message_seconds(int from, int to, double bytes) const {
  const plan::Level& level = links_.between(from, to);
  return level.alpha + level.beta * bytes;
}

SKEIN_INLINE double SlowNetwork::collective_seconds(int ranks, const comm::CollectiveCall& o) const {
  return collective_ > 0 ? collective_ : ranks <= 1 ? 0 : comm::seconds_of(o, ranks, links_);
}

SKEIN_INLINE void SlowNetwork::departed(int from, int to, int tag, Clock::time_point when) {
  const std::lock_guard lock(mutex_);
  departures_[{from, to, tag}].push_back(when);
}

SKEIN_INLINE SlowNetwork::Clock::time_point SlowNetwork::departure(int from, int to, int tag) {
  const std::lock_guard lock(mutex_);
  auto& all = departures_[{from, to, tag}];
  if (all.empty()) return {};
  const Clock::time_point first = all.front();
  all.pop_front();
  return first;
}

SKEIN_INLINE void SlowNetwork::entered(std::uint64_t call, Clock::time_point when) {
  const std::lock_guard lock(mutex_);
  Entry& e = entries_[call];
  e.last = std::max(e.last, when);
}

SKEIN_INLINE SlowNetwork::Clock::time_point SlowNetwork::last(std::uint64_t call, int ranks) {
  const std::lock_guard lock(mutex_);
  Entry& e = entries_[call];
  const Clock::time_point when = e.last;
  if (++e.asked == ranks) entries_.erase(call);
  return when;
}

}  // namespace skein::inline SKEIN_ABI
