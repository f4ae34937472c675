// SPDX-License-Identifier: Apache-2.0
// The bodies of wait.hpp.
#pragma once
#include "wait.hpp"

namespace skein::inline SKEIN_ABI::comm {

SKEIN_INLINE void Deadline::start() {
  if (!running_) since_ = std::chrono::steady_clock::now(), running_ = true;
}

SKEIN_INLINE double Deadline::waited() const {
  return running_ ? std::chrono::duration<double>(std::chrono::steady_clock::now() - since_).count() : 0.0;
}

SKEIN_INLINE std::string seconds_text(double s) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", s);
  return text;
}

}  // namespace skein::inline SKEIN_ABI::comm
