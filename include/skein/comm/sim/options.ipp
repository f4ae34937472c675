// SPDX-License-Identifier: Apache-2.0
// The bodies of options.hpp.
#pragma once
#include "options.hpp"

namespace skein::inline SKEIN_ABI {

SKEIN_INLINE double SimReport::seconds() const {
  double most = 0;
  for (const SimRank& r : ranks) most = std::max(most, r.clock);
  return most;
}

SKEIN_INLINE long SimReport::messages() const {
  long n = 0;
  for (const SimRank& r : ranks) n += r.messages;
  return n;
}

SKEIN_INLINE long SimReport::bytes() const {
  long n = 0;
  for (const SimRank& r : ranks) n += r.bytes;
  return n;
}

SKEIN_INLINE std::string SimReport::text() const {
  double compute = 0, waited = 0;
  for (const SimRank& r : ranks) compute += r.compute, waited += r.waited;
  const double n = std::max<double>(1, static_cast<double>(ranks.size()));
  char line[200];
  std::snprintf(line, sizeof line,
                "simulated: %zu ranks, %.6g s; of a rank %.6g s compute, %.6g s waiting; %ld messages, %ld bytes", ranks.size(),
                seconds(), compute / n, waited / n, messages(), bytes());
  return line;
}

}  // namespace skein::inline SKEIN_ABI
