// SPDX-License-Identifier: Apache-2.0
// What a rank remembers of its calls that are running on a GPU: which is the oldest, for how long, and whether the coordinator
// has been asked about it. Without a clock and without a device: times and completions are told. running -> overdue (the
// coordinator is asked, once) -> failed (the communicator is to be aborted, once).
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "../../core/error.hpp"
#include "../collective_call.hpp"

namespace skein::inline SKEIN_ABI::comm::control {

/// The calls of a rank that are running on a device, oldest first. Times are told in seconds; it has no clock.
class CallWatch {
 public:
  /// The next call has been given to the device. Returns its number, from 0. `name` in place of the signature's text, where it
  /// has one.
  std::uint64_t start(const Signature& what, double now, const char* name = nullptr);
  /// The oldest call is done: completions come in order. The time of the next begins now, since it waited for its turn.
  void finish_oldest(double now);
  bool running() const { return oldest_ < started_; }
  std::uint64_t oldest() const { return oldest_; }
  /// Calls so far, running or done.
  std::uint64_t started() const { return started_; }

  struct Overdue {
    std::uint64_t call;
    std::string what;
  };
  /// The oldest call, once, when it has taken `limit` seconds.
  std::optional<Overdue> overdue(double now, double limit);
  /// What to tell who asks where this rank is; empty where nothing runs.
  std::string waits_in() const { return running() ? skein::text("{} (call {})", text(first()), oldest_) : ""; }

  /// The verdict. True for the first: abort now.
  bool fail(const std::string& message);
  bool failed() const { return !message_.empty(); }
  const std::string& message() const { return message_; }

 private:
  struct Call {
    Signature what{};
    double since = 0;
    const char* name = nullptr;
  };
  const Call& first() const { return calls_[oldest_ % calls_.size()]; }
  Call& first() { return calls_[oldest_ % calls_.size()]; }
  static std::string text(const Call& c) { return c.name ? c.name : describe(c.what); }
  std::array<Call, 128> calls_{};  // nothing is allocated in a step
  std::uint64_t started_ = 0, oldest_ = 0;
  bool asked_ = false;
  std::string message_;
};

}  // namespace skein::inline SKEIN_ABI::comm::control

#if !SKEIN_COMPILED
#include "watch.ipp"
#endif
