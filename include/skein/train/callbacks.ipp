// SPDX-License-Identifier: Apache-2.0
// The bodies of callbacks.hpp.
#pragma once
#include <algorithm>

#include "../core/text.hpp"
#include "callbacks.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

namespace detail {
/// Throws ArgumentError unless 0 <= value <= most.
inline void demand_range(const char* option, double value, double most) {
  if (value >= 0 && value <= most) return;
  throw ArgumentError(text("{} is {}: give {}", option, value, most == 1 ? "a share of the rate, from 0 to 1" : "0 or more"));
}
}  // namespace detail

SKEIN_INLINE void EarlyStopping::check_options() const {
  if (patience < 0) throw ArgumentError(text("EarlyStopping: .patience is {}: give 0 or more epochs", patience));
  detail::demand_range("EarlyStopping: .least_change", least_change, std::numeric_limits<double>::max());
}

SKEIN_INLINE void EarlyStopping::on_epoch_end(EpochRecord& epoch, FitControl& control) {
  if (best.improved_by(epoch, watch, least_change, "EarlyStopping")) {
    if (restore_best) control.keep_weights();
  } else if (best.epoch > 0 && epoch.epoch - best.epoch >= patience) {
    control.finish(skein::text("early stopping: no better since epoch {}", best.epoch));
  }
}

SKEIN_INLINE void ReduceOnPlateau::check_options() const {
  if (patience < 0) throw ArgumentError(text("ReduceOnPlateau: .patience is {}: give 0 or more epochs", patience));
  if (!(factor > 0 && factor < 1)) throw ArgumentError("ReduceOnPlateau: .factor must be between 0 and 1");
  if (cooldown < 0) throw ArgumentError(text("ReduceOnPlateau: .cooldown is {}: give 0 or more epochs", cooldown));
  detail::demand_range("ReduceOnPlateau: .threshold", threshold, std::numeric_limits<double>::max());
  detail::demand_range("ReduceOnPlateau: .least_factor", least_factor, 1);
}

SKEIN_INLINE void ReduceOnPlateau::on_epoch_end(EpochRecord& epoch, FitControl& control) {
  if (best.improved_by(epoch, watch, std::isfinite(best.value) ? threshold * std::fabs(best.value) : 0, "ReduceOnPlateau"))
    bad_epochs = 0;
  else ++bad_epochs;
  if (cooling > 0) --cooling, bad_epochs = 0;
  if (bad_epochs <= patience) return;
  const double now = control.rate_factor();
  control.set_rate_factor(std::max(now * factor, std::min(now, least_factor)));  // never up, whoever has set it lower
  cooling = cooldown;
  bad_epochs = 0;
}

SKEIN_INLINE void LearningRateLog::on_step_end(const StepRecord& step, FitControl&) {
  if (rates.empty() || rates.back().second != step.learning_rate) rates.emplace_back(step.step, step.learning_rate);
}

SKEIN_INLINE void LearningRateLog::write_csv(const std::string& path) const {
  std::string text = "step,learning_rate\n";
  for (const auto& [step, rate] : rates) {
    append_integer(text, step);
    append_number(text += ',', rate);
    text += '\n';
  }
  AtomicFile file(path);
  file.append(text.data(), text.size());
  file.commit();
}

SKEIN_INLINE void TimeLimit::check_options() const {
  if (!(seconds > 0))
    throw ArgumentError(text("TimeLimit: .seconds is {}: give the seconds that the fit may take, more than 0", seconds));
}

SKEIN_INLINE void TimeLimit::on_step_end(const StepRecord&, FitControl& control) {
  if (!whole_epochs) check(last, longest, "step", control);
}

SKEIN_INLINE void TimeLimit::on_epoch_end(const EpochRecord&, FitControl& control) {
  if (whole_epochs) check(last_epoch, longest, "epoch", control);
  last = now();  // validation is no step
}

SKEIN_INLINE void TimeLimit::check(double& before, double& most, const char* what, FitControl& control) const {
  const double instant = now();
  most = instant - before > most ? instant - before : most;
  before = instant;
  if (instant - start + most <= seconds) return;
  std::string reason = "time limit: after ";
  append_fixed(reason, instant - start, 1);
  reason.append(" s the next ").append(what).append(" may not end within ");
  append_fixed(reason, seconds, 1);
  control.stop(reason + " s");
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
