// SPDX-License-Identifier: Apache-2.0
// The bodies of watch.hpp.
#pragma once
#include "watch.hpp"

namespace skein::inline SKEIN_ABI::comm::control {

SKEIN_INLINE std::uint64_t CallWatch::start(const Signature& what, double now, const char* name) {
  if (started_ - oldest_ == calls_.size()) throw CommError(skein::text("more than {} calls are running", calls_.size()));
  calls_[started_ % calls_.size()] = {what, now, name};
  return started_++;
}

SKEIN_INLINE void CallWatch::finish_oldest(double now) {
  if (!running()) return;
  ++oldest_;
  asked_ = false;
  if (running() && first().since < now) first().since = now;
}

SKEIN_INLINE std::optional<CallWatch::Overdue> CallWatch::overdue(double now, double limit) {
  if (!running() || asked_ || failed() || now - first().since < limit) return std::nullopt;
  asked_ = true;
  return Overdue{oldest_, text(first())};
}

SKEIN_INLINE bool CallWatch::fail(const std::string& message) {
  if (failed()) return false;
  message_ = message.empty() ? "this communicator has failed" : message;
  oldest_ = started_;
  return true;
}

}  // namespace skein::inline SKEIN_ABI::comm::control
