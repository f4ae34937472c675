// SPDX-License-Identifier: Apache-2.0
// FlagWithin: a flag has a value for a scope, and then again the one that it had before.
#pragma once
#include "config.hpp"

namespace skein::inline SKEIN_ABI::detail {

/// Sets a flag while it lives.
class FlagWithin {
 public:
  FlagWithin(bool& flag, bool value) : flag_(flag), before_(flag) { flag = value; }
  ~FlagWithin() { flag_ = before_; }
  FlagWithin(const FlagWithin&) = delete;
  FlagWithin& operator=(const FlagWithin&) = delete;

 private:
  bool& flag_;
  bool before_;
};

}  // namespace skein::inline SKEIN_ABI::detail
