// SPDX-License-Identifier: Apache-2.0
// The bodies of fit_signals.hpp.
#pragma once
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "../core/text.hpp"
#include "fit_signals.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train::detail {

SKEIN_INLINE std::string ended_by_signal(int signal, std::int64_t step, const std::string& folder, bool serves) {
  const std::string what = text("fit: {} ended it after step {}; ", name_of_signal(signal), step);
  if (serves) return what + "nothing is saved: a ParameterServer has no commits";
  if (folder.empty())
    return what + "nothing is saved: with .checkpoint = {.folder = \"run\"} the next start would go on from there";
  return what + text("the training is saved in {}, and goes on from there when the program is started again", folder);
}

SKEIN_INLINE FitSignals::FitSignals(const FitInterrupt& options, const FitFacts& facts, bool each_step)
    : watch_(options, facts.rank,
             facts.ranks == 1 || facts.in_step || each_step ? SignalWatch::Ends::step
             : facts.asks                                   ? SignalWatch::Ends::soon
                                                            : SignalWatch::Ends::epoch),
      options_(options), in_step_(facts.in_step) {}

SKEIN_INLINE void FitSignals::count(int of_servers, double* counts) const {
  const int own = heard(of_servers);
  counts[0] = own == SIGINT ? 1 : 0;
  counts[1] = own == SIGTERM ? 1 : 0;
  counts[2] = own != 0 && own != SIGINT && own != SIGTERM ? 1 : 0;
}

SKEIN_INLINE bool FitSignals::take(const double* of_all) {
  const int signal = of_all[0] > 0 ? SIGINT : of_all[1] > 0 ? SIGTERM : of_all[2] > 0 ? options_.also : 0;
  if (signal == 0 || ending_ != 0) return false;
  ending_ = signal;
  watch_.taken();
  return true;
}

SKEIN_INLINE bool FitSignals::updated() {
  ++updates_;
  return options_.on_signals || options_.also != 0;
}

SKEIN_INLINE double FitSignals::next_round(double now) const {
  constexpr double seconds = 0.25;
  const auto since = static_cast<double>(updates_ - last_);
  return std::clamp(std::floor(seconds * since / std::max(1e-9, now - asked_at_)), 1.0, 4 * since);
}

SKEIN_INLINE void FitSignals::asked(double now, double next) {
  asked_at_ = now;
  last_ = updates_;
  next_ = updates_ + static_cast<std::int64_t>(next);
  latest_ = updates_ + 4 * static_cast<std::int64_t>(next);
}

}  // namespace skein::inline SKEIN_ABI::train::detail

SKEIN_END_COLD
