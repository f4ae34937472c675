// SPDX-License-Identifier: Apache-2.0
// Whose turn it is in a simulation: ranks are threads of which one runs at a time, the one whose time is the earliest.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>

#include "../thread/team.hpp"
#include "group.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// The turn of n ranks; rank 0 begins. Times are of the rank whose turn it is to write.
class SimTurn {
 public:
  SimTurn(int n, std::shared_ptr<Failure> failure) : failure_(std::move(failure)), ranks_(static_cast<std::size_t>(n)) {}

  Failure& failure() { return *failure_; }
  const Failure& failure() const { return *failure_; }
  /// Throws where the simulation has failed.
  void check() const;
  /// Returns when it is this rank's turn. Throws where the simulation has failed meanwhile.
  void begin(int rank);
  /// Until this rank's time is the earliest; never: it waits for others. False where all do.
  bool wait(int rank, double time);
  /// It has returned or failed: the next one's turn. False where those that are left wait for each other.
  bool leave(int rank);
  void wake();

  bool gone(int rank) const { return of(rank).gone; }
  double time(int rank) const { return of(rank).time; }
  /// Sets the time until which a rank waits: what it waits for is known now, or comes earlier.
  void set_time(int rank, double time) { of(rank).time = time; }

 private:
  struct Rank {
    std::condition_variable turn;
    double time = 0;
    bool gone = false;
  };
  Rank& of(int r) { return ranks_[static_cast<std::size_t>(r)]; }
  const Rank& of(int r) const { return ranks_[static_cast<std::size_t>(r)]; }
  /// The rank whose time is the earliest; -1 where all wait for others.
  int least() const;
  bool mine(int rank) const { return current_ == rank || failure_->happened(); }

  std::shared_ptr<Failure> failure_;
  std::deque<Rank> ranks_;
  std::mutex mutex_;
  int current_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::comm

#if !SKEIN_COMPILED
#include "turn.ipp"
#endif
