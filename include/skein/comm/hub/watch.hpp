// SPDX-License-Identifier: Apache-2.0
// What a rank remembers of its calls that are running on a GPU: which is the oldest, for how long, and whether the hub has been
// asked about it. Without a clock and without a device: times and completions are told. running -> overdue (the hub is asked,
// once) -> failed (the communicator is to be aborted, once).
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "../operation.hpp"

namespace skein::inline SKEIN_ABI::comm::hub {

class CallWatch {
 public:
  /// The next call has been given to the device. Returns its number, from 0. `name` in place of the signature's text, where it has one.
  std::uint64_t start(const Signature& what, double now, const char* name = nullptr) {
    calls_.push_back({started_, what, now, name});
    return started_++;
  }
  /// The oldest call is done: completions come in order. The time of the next begins now, since it waited for its turn.
  void finish_oldest(double now) {
    if (calls_.empty()) return;
    calls_.pop_front();
    asked_ = false;
    if (!calls_.empty() && calls_.front().since < now) calls_.front().since = now;
  }
  bool running() const { return !calls_.empty(); }
  std::uint64_t oldest() const { return calls_.empty() ? started_ : calls_.front().number; }
  /// Calls so far, running or done.
  std::uint64_t started() const { return started_; }

  struct Overdue {
    std::uint64_t call;
    std::string what;
  };
  /// The oldest call, once, when it has taken `limit` seconds.
  std::optional<Overdue> overdue(double now, double limit) {
    if (calls_.empty() || asked_ || failed() || now - calls_.front().since < limit) return std::nullopt;
    asked_ = true;
    return Overdue{calls_.front().number, text(calls_.front())};
  }
  /// What to tell who asks where this rank is; empty where nothing runs.
  std::string waits_in() const { return calls_.empty() ? "" : text(calls_.front()) + " (call " + std::to_string(calls_.front().number) + ")"; }

  /// The verdict. True for the first: abort now.
  bool fail(const std::string& message) {
    if (failed()) return false;
    message_ = message.empty() ? "this communicator has failed" : message;
    calls_.clear();
    return true;
  }
  bool failed() const { return !message_.empty(); }
  const std::string& message() const { return message_; }

 private:
  struct Call {
    std::uint64_t number;
    Signature what;
    double since;
    const char* name;
  };
  static std::string text(const Call& c) { return c.name ? c.name : describe(c.what); }
  std::deque<Call> calls_;
  std::uint64_t started_ = 0;
  bool asked_ = false;
  std::string message_;
};

}  // namespace skein::inline SKEIN_ABI::comm::hub
