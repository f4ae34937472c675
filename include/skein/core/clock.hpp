// SPDX-License-Identifier: Apache-2.0
// The clock of progress lines, records, time limits and parts of a step: seconds that never run backwards. Not <chrono>, which
// costs every includer a third of a second of compile time.
#pragma once
#include <ctime>

#include "config.hpp"

namespace skein::inline SKEIN_ABI {

/// Seconds since some fixed instant, monotonic.
inline double seconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace skein::inline SKEIN_ABI
