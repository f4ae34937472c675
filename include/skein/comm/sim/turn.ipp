// SPDX-License-Identifier: Apache-2.0
// The bodies of turn.hpp.
#pragma once
#include "../../core/error.hpp"
#include "turn.hpp"

namespace skein::inline SKEIN_ABI::comm {

SKEIN_INLINE void SimTurn::check() const {
  if (failure_->happened()) throw CommError(failure_->message());
}

SKEIN_INLINE void SimTurn::begin(int rank) {
  {
    std::unique_lock lock(mutex_);
    of(rank).turn.wait(lock, [&] { return mine(rank); });
  }
  check();
}

SKEIN_INLINE bool SimTurn::wait(int rank, double time) {
  of(rank).time = time;
  const int next = least();
  if (next == rank) return true;
  if (next < 0) return false;
  {
    std::unique_lock lock(mutex_);
    current_ = next;
    of(next).turn.notify_all();
    of(rank).turn.wait(lock, [&] { return mine(rank); });
  }
  check();
  return true;
}

SKEIN_INLINE bool SimTurn::leave(int rank) {
  of(rank).gone = true;
  of(rank).time = sim_never;
  if (failure_->happened()) return wake(), true;
  bool left = false;
  for (const Rank& r : ranks_) left = left || !r.gone;
  if (!left) return true;
  const int next = least();
  if (next < 0) return false;
  const std::lock_guard lock(mutex_);
  current_ = next;
  of(next).turn.notify_all();
  return true;
}

SKEIN_INLINE void SimTurn::wake() {
  const std::lock_guard lock(mutex_);
  for (Rank& r : ranks_) r.turn.notify_all();
}

SKEIN_INLINE int SimTurn::least() const {
  int best = -1;
  for (std::size_t r = 0; r < ranks_.size(); ++r)
    if (!ranks_[r].gone && ranks_[r].time < sim_never && (best < 0 || ranks_[r].time < of(best).time)) best = static_cast<int>(r);
  return best;
}

}  // namespace skein::inline SKEIN_ABI::comm
