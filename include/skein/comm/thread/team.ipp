// SPDX-License-Identifier: Apache-2.0
// The bodies of team.hpp.
#pragma once
#include "team.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::comm {

SKEIN_INLINE bool Failure::set(int rank, const std::string& message, std::exception_ptr cause) {
  const std::lock_guard lock(mutex_);
  const bool reason = cause && abandoned_by_ == std::this_thread::get_id();
  if (state_.load(std::memory_order_relaxed) != 0 && !reason) return false;
  abandoned_by_ = {};
  rank_ = rank;
  message_ = message;
  cause_ = cause;
  state_.store(1, std::memory_order_seq_cst);
  return true;
}

SKEIN_INLINE void Failure::abandon(int rank) {
  if (!set(rank, text("rank {} failed: an exception left a collective or message that had been started", rank))) return;
  const std::lock_guard lock(mutex_);
  abandoned_by_ = std::this_thread::get_id();
}

SKEIN_INLINE Team::Team(RankNames ranks, const CommOptions& o, int ranks_of_process, std::shared_ptr<Failure> f)
    : names(std::move(ranks)), size(names.size()), node_size(ranks_of_process),
      spins(ranks_of_process <= available_cores() ? 3000 : 0), options(checked_options(o)), failure(std::move(f)),
      lines(static_cast<std::size_t>(size)), posts(lines.size() * ring), boxes(lines.size()), pools(lines.size()) {}

SKEIN_INLINE std::shared_ptr<Team> Team::part(std::uint64_t split, int color, const std::vector<int>& members) {
  const std::lock_guard lock(parts_mutex_);
  const auto at = parts_.try_emplace({split, color}).first;
  if (!at->second.team) at->second.team = std::make_shared<Team>(names.part(members), options, node_size, failure);
  std::shared_ptr<Team> team = at->second.team;
  if (++at->second.asked == team->size) parts_.erase(at);
  return team;
}

SKEIN_INLINE void Team::wake_everyone() {
  for (Line& l : lines)
    for (const Counter& c : l.counter) wake_all(c, Reach::Process);
}

}  // namespace skein::inline SKEIN_ABI::comm

SKEIN_END_COLD
