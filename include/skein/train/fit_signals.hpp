// SPDX-License-Identifier: Apache-2.0
// The signals that end a fit, on all its ranks: one on one rank is enough. Ranks add up what they have heard about four times a
// second, at an update that all know beforehand; where they do not wait for each other in each step, at one in which they do, or
// once a second.
#pragma once
#include <cstdint>
#include <string>

#include "fit_facts.hpp"
#include "signal_watch.hpp"

namespace skein::inline SKEIN_ABI::train::detail {

/// What the Interrupted of a fit says: after which step, and what is saved where. `serves`: the policy has ranks that make
/// updates.
std::string ended_by_signal(int signal, std::int64_t step, const std::string& folder, bool serves);

/// The signals of one fit on one rank. The sums are the loop's: it has others to add up at the same time.
class FitSignals {
 public:
  /// `each_step`: ranks agree after each step in any case.
  FitSignals(const FitInterrupt& options, const FitFacts& facts, bool each_step);
  /// The first step is next.
  void begin(double now) { asked_at_ = now; }

  /// The signal of this rank, or that of the servers which make its updates; 0: none.
  int heard(int of_servers) const { return watch_.received() != 0 ? watch_.received() : of_servers; }
  /// Counts the signal that is heard in the three numbers that ranks add up: SIGINT, SIGTERM, another.
  void count(int of_servers, double* counts) const;
  /// From the sums. True where they end the fit now.
  bool take(const double* of_all);
  /// The one that ends the fit; 0: none.
  int ending() const { return ending_; }

  /// After each update. Is there a signal to listen for?
  bool updated();
  /// Do all ranks ask each other after this update? `all_met()`: have they waited for each other in it?
  template <class AllMet> bool due(const AllMet& all_met) const {
    return updates_ >= next_ && (updates_ >= latest_ || in_step_ || all_met());
  }
  /// In so many updates they could ask next, as this rank sees it.
  double next_round(double now) const;
  /// They have asked, and ask next in so many updates.
  void asked(double now, double next);

 private:
  SignalWatch watch_;
  const FitInterrupt& options_;
  bool in_step_;
  int ending_ = 0;
  std::int64_t updates_ = 0, next_ = 1, latest_ = 1, last_ = 0;
  double asked_at_ = 0;
};

}  // namespace skein::inline SKEIN_ABI::train::detail

#if !SKEIN_COMPILED
#include "fit_signals.ipp"
#endif
