// SPDX-License-Identifier: Apache-2.0
// The bodies of wait.hpp.
#pragma once
#include "../core/clock.hpp"
#include "wait.hpp"

namespace skein::inline SKEIN_ABI::comm {

SKEIN_INLINE void Deadline::start() {
  if (!running_) since_ = seconds_now(), running_ = true;
}

SKEIN_INLINE double Deadline::waited() const { return running_ ? seconds_now() - since_ : 0.0; }

SKEIN_INLINE std::string seconds_text(double s) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", s);
  return text;
}

SKEIN_INLINE cpu_set_t own_cores() {
  cpu_set_t own;
  CPU_ZERO(&own);
  (void)sched_getaffinity(0, sizeof own, &own);
  return own;
}

SKEIN_INLINE int spins_of(std::span<const cpu_set_t> cores) {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (const cpu_set_t& c : cores) CPU_OR(&all, &all, &c);
  return CPU_COUNT(&all) >= static_cast<int>(cores.size()) ? 3000 : 0;
}

}  // namespace skein::inline SKEIN_ABI::comm
