// SPDX-License-Identifier: Apache-2.0
// The bodies of options.hpp.
#pragma once
#include "../../core/error.hpp"
#include "options.hpp"
#include "tables.hpp"

namespace skein::inline SKEIN_ABI {

SKEIN_INLINE void SimOptions::check() const {
  comm::check_links("simulate", network);
  if (!comm::is_time(jitter) || !comm::is_time(measured) || !comm::is_time(poll) || poll == 0)
    throw ArgumentError("simulate: .jitter and .measured are 0 or more, and a poll takes time; all are finite");
  for (const double s : slow)
    if (!comm::is_time(s) || s == 0)
      throw ArgumentError(
          skein::text("simulate: .slow are factors of the time to compute, more than 0 and finite; one is {}", s));
}

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
