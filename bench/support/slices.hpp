// SPDX-License-Identifier: Apache-2.0
// Two candidates side by side: short slices in the order A B B A, the ratio of each round, the median of the ratios with its
// interval; and the same of a candidate against itself, which tells whether this machine can measure to 1 % just now. A
// candidate is a function of a count that does its work so often and says how long that took.
#pragma once
#include <ctime>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "statistics.hpp"

namespace bench {

/// Seconds of wall time, and of processor time over all threads.
struct Slice {
  double wall = 0, cpu = 0;
};
using Candidate = std::function<Slice(long)>;

inline double clock_seconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// f(), n times.
template <class F> Slice timed(long n, F&& f) {
  const double wall = clock_seconds(CLOCK_MONOTONIC), cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
  for (long i = 0; i < n; ++i) f();
  return {clock_seconds(CLOCK_MONOTONIC) - wall, clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu};
}
/// f as a candidate, after one call that is not timed.
template <class F> Candidate candidate(F f) {
  return [f](long n) mutable {
    f();
    return timed(n, f);
  };
}

struct Plan {
  double slice = 0.003;  ///< seconds
  int rounds = 100;      ///< each is A B B A
};
/// In one process; against a child process, whose phases are longer.
inline Plan within(bool quick) { return {quick ? 0.002 : 0.003, quick ? 40 : 150}; }
inline Plan between(bool quick) { return {quick ? 0.015 : 0.04, quick ? 40 : 100}; }

/// How often a candidate fits into a slice.
inline long count_for(const Candidate& c, double slice) {
  double one = 1e9;
  long n = 1;
  for (int i = 0; i < 12; ++i) {
    one = std::min(one, c(n).wall / static_cast<double>(n));
    if (one * static_cast<double>(n) >= slice / 4) break;
    n *= 4;
  }
  return std::max(1L, static_cast<long>(slice / std::max(one, 1e-9) + 0.5));
}

/// Seconds a call are medians; `least_` are minima.
struct Comparison {
  Interval ratio{};  ///< of A over B, wall time
  double cpu_ratio = 0, a = 0, b = 0, least_a = 0, least_b = 0;
};

/// The same pair several times, each with memory of its own: round by round another one takes its turn. How arrays lie in the
/// machine's memory differs from one to the next, and is no property of the code.
inline Comparison compare(const std::vector<std::pair<Candidate, Candidate>>& pairs, Plan plan) {
  std::vector<std::pair<long, long>> counts;
  for (const auto& [a, b] : pairs) counts.emplace_back(count_for(a, plan.slice), count_for(b, plan.slice));
  std::vector<double> ratios, cpu_ratios, as, bs;
  for (int i = 0; i < plan.rounds; ++i) {
    const std::size_t k = static_cast<std::size_t>(i) % pairs.size();
    const auto& [a, b] = pairs[k];
    const auto [na, nb] = counts[k];
    const Slice a1 = a(na), b1 = b(nb), b2 = b(nb), a2 = a(na);
    const double per = static_cast<double>(nb) / static_cast<double>(na);
    ratios.push_back((a1.wall + a2.wall) / (b1.wall + b2.wall) * per);
    if (b1.cpu + b2.cpu > 0) cpu_ratios.push_back((a1.cpu + a2.cpu) / (b1.cpu + b2.cpu) * per);
    for (const Slice& s : {a1, a2}) as.push_back(s.wall / static_cast<double>(na));
    for (const Slice& s : {b1, b2}) bs.push_back(s.wall / static_cast<double>(nb));
  }
  return {bootstrap(ratios), median(cpu_ratios), median(as), median(bs), minimum(as), minimum(bs)};
}
inline Comparison compare(const Candidate& a, const Candidate& b, Plan plan) { return compare({{a, b}}, plan); }

/// A candidate alone.
inline Comparison alone(const Candidate& a, Plan plan) {
  const long n = count_for(a, plan.slice);
  std::vector<double> as;
  for (int i = 0; i < 2 * plan.rounds; ++i) as.push_back(a(n).wall / static_cast<double>(n));
  return {{}, 0, median(as), 0, minimum(as), 0};
}

/// Whether a candidate measured as itself: its ratio to itself is within 1 % of 1, and known so well that the interval is at most
/// 4 % wide. An interval that only touches 1 would say nothing: the noisier the machine, the surer it does.
inline bool measures_as_itself(const Interval& i) { return std::fabs(i.median - 1) <= 0.01 && i.high - i.low <= 0.04; }

/// A against A: tried up to three times. Says nothing where the candidate measured as itself, else why what follows is void.
inline std::string void_reason(const Candidate& a, Plan plan) {
  plan.rounds = std::max(40, plan.rounds / 2);
  Interval i;
  for (int k = 0; k < 3; ++k) {
    i = compare(a, a, plan).ratio;
    if (measures_as_itself(i)) return {};
  }
  char text[96];
  std::snprintf(text, sizeof text, "void: A/A gave %.3f, %.3f to %.3f", i.median, i.low, i.high);
  return text;
}

}  // namespace bench
