// SPDX-License-Identifier: Apache-2.0
// The calls of one rank that are in flight, in the order in which they were started.
#pragma once
#include <array>
#include <cstdint>

#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::comm {

/// At most `room` calls, in memory that is made once. Call n, counted from 0, is complete once complete() > n: the number of its
/// Ticket is n + 1.
template <class Call> class CallRing {
 public:
  static constexpr std::uint64_t room = 64;

  std::uint64_t started() const { return started_; }
  std::uint64_t complete() const { return complete_; }
  bool empty() const { return started_ == complete_; }
  bool full() const { return started_ - complete_ == room; }

  /// Call n: of the last `room` that were started.
  Call& operator[](std::uint64_t n) { return calls_[n % room]; }
  const Call& operator[](std::uint64_t n) const { return calls_[n % room]; }
  /// The first that is not complete.
  Call& oldest() { return (*this)[complete_]; }
  const Call& oldest() const { return (*this)[complete_]; }

  /// Where the next call is written, as long as the ring is not full; push() starts it.
  Call& next() { return (*this)[started_]; }
  /// Returns the number of its Ticket.
  std::uint64_t push() { return ++started_; }
  /// The oldest is complete.
  void pop() { ++complete_; }

 private:
  std::array<Call, room> calls_{};
  std::uint64_t started_ = 0, complete_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::comm
