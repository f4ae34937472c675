// SPDX-License-Identifier: Apache-2.0
// The bodies of wait.hpp.
#pragma once
#include <algorithm>

#include "../core/clock.hpp"
#include "../core/cpu_quota.hpp"
#include "wait.hpp"

namespace skein::inline SKEIN_ABI::comm {

SKEIN_INLINE double AwakeClock::now(double longest) {
  const double before = last_;
  last_ = seconds_now();
  if (before > 0) awake_ += last_ - before < longest ? last_ - before : longest;
  return awake_;
}

SKEIN_INLINE void Deadline::start() {
  if (!running_) since_ = clock_.now(), running_ = true;
}

SKEIN_INLINE double Deadline::waited() { return running_ ? clock_.now() - since_ : 0.0; }

SKEIN_INLINE std::string seconds_text(double s) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", s);
  return text;
}

SKEIN_INLINE int spins_of(const std::vector<Cores>& cores) {
  Cores all;
  for (const Cores& c : cores) all.add(c);
  const int quota = cpu_quota(), count = quota > 0 ? std::min(quota, all.count()) : all.count();
  return count >= static_cast<int>(cores.size()) ? 3000 : 0;
}

}  // namespace skein::inline SKEIN_ABI::comm
