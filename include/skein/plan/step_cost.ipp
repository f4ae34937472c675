// SPDX-License-Identifier: Apache-2.0
// The bodies of step_cost.hpp.
#pragma once
#include "../core/error.hpp"
#include "step_cost.hpp"

namespace skein::inline SKEIN_ABI::plan {

SKEIN_INLINE double seconds_of(const TrainingOnClocks& t) {
  if (t.ranks < 1) throw ArgumentError(text("seconds_of: .ranks is {}: give 1 or more", t.ranks));
  std::vector<double> clock(static_cast<std::size_t>(t.ranks), 0.0);
  const std::uint64_t key = random_key(t.seed.value, 0x636c6f63ull);  // "cloc"
  for (long s = 1; s <= t.steps; ++s) {
    double last = 0;
    for (std::size_t r = 0; r < clock.size(); ++r) {
      const double factor =
          (r < t.slow.size() ? t.slow[r] : 1.0) *
          (t.jitter > 0 ? std::exp(t.jitter * static_cast<double>(random_normal(key, r, static_cast<std::uint64_t>(s)))) : 1.0);
      clock[r] += t.compute * factor;
      last = std::max(last, clock[r]);
    }
    if (t.period > 0 && s % t.period == 0) std::fill(clock.begin(), clock.end(), last + t.exposed);
  }
  return *std::max_element(clock.begin(), clock.end());
}

}  // namespace skein::inline SKEIN_ABI::plan
