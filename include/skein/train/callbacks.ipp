// SPDX-License-Identifier: Apache-2.0
// The bodies of callbacks.hpp.
#pragma once
#include "callbacks.hpp"

namespace skein::inline SKEIN_ABI::train {

SKEIN_INLINE double merit(const EpochRecord& epoch, Watch watch) {
  const bool validation = watch == Watch::ValidationLoss || watch == Watch::ValidationAccuracy;
  if (validation && !epoch.validation.measured())
    throw ArgumentError(
        "a callback watches the validation, but the training has none: give fit a .validate set, or watch "
        "Watch::TrainingLoss");
  const Scores& scores = validation ? epoch.validation : epoch.training;
  const bool loss = watch == Watch::ValidationLoss || watch == Watch::TrainingLoss;
  const double value = loss ? -scores.loss : scores.accuracy;
  return value == value ? value : -std::numeric_limits<double>::infinity();
}

SKEIN_INLINE void EarlyStopping::on_epoch_end(EpochRecord& epoch, Control& control) {
  const double now = merit(epoch, watch);
  if (best_epoch == 0 || now > best + least_change) {
    best = now;
    best_epoch = epoch.epoch;
  } else if (epoch.epoch - best_epoch >= patience) {
    control.stop("early stopping: no better since epoch " + std::to_string(best_epoch));
  }
}

SKEIN_INLINE void LearningRateLog::on_step_end(const StepRecord& step, Control&) {
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

SKEIN_INLINE void TimeLimit::on_step_end(const StepRecord&, Control& control) {
  if (!whole_epochs) check(last, longest, "step", control);
}

SKEIN_INLINE void TimeLimit::on_epoch_end(EpochRecord&, Control& control) {
  if (whole_epochs) check(last_epoch, longest, "epoch", control);
  last = now();  // validation is no step
}

SKEIN_INLINE void TimeLimit::check(double& before, double& most, const char* what, Control& control) const {
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
