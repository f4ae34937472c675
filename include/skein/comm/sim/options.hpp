// SPDX-License-Identifier: Apache-2.0
// What a simulated world is made of, and what it reports: links, slow ranks, jitter; clocks, seconds and messages of each rank.
// Every figure that comes out of here is *simulated*, and text() says so.
#pragma once
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "../../core/random.hpp"
#include "../../plan/alpha_beta.hpp"

namespace skein::inline SKEIN_ABI {

/// Options of simulate(). Seconds everywhere.
struct SimOptions {
  plan::Network network{{1e-6, 1e-10}, {1e-6, 1e-10}, 0, 0};  ///< alpha and beta of a level, ranks of a node, gamma of a sum
  std::optional<plan::AllReduceAlgorithm> algorithm{};        ///< of all-reduces; nothing: the cheapest of the network, by size
  std::vector<double> slow{};  ///< rank r computes slow[r] times as long; 1 for those that it does not name
  double jitter = 0;           ///< each compute and message takes exp(jitter * normal) times as long
  Seed seed{1};                ///< of the jitter: the same seed, the same times
  double measured = 0;         ///< > 0: what a rank's thread computes between two calls counts too, so many times
  double poll = 1e-7;          ///< what an unsuccessful poll takes

  /// Throws ArgumentError for times that a clock cannot go on by.
  void check() const;
};

/// What one rank did. clock = compute + waited + what polls took.
struct SimRank {
  double clock = 0, compute = 0, waited = 0;
  long messages = 0, bytes = 0;  ///< that left it
};

/// What simulate() returns.
struct SimReport {
  std::vector<SimRank> ranks{};

  /// Until the last rank had ended. Simulated.
  double seconds() const;
  long messages() const;
  long bytes() const;
  std::string text() const;
};

}  // namespace skein::inline SKEIN_ABI

#if !SKEIN_COMPILED
#include "options.ipp"
#endif
