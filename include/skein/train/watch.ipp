// SPDX-License-Identifier: Apache-2.0
// The bodies of watch.hpp.
#pragma once
#include <algorithm>
#include <iterator>

#include "watch.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {

namespace detail {
inline constexpr std::string_view training_prefix = "training ";

/// The scores that the name is about, and the name within them.
inline std::pair<const Scores*, std::string_view> scores_of(const EpochRecord& epoch, const Watch& watch) {
  const std::string_view name = watch.name;
  if (name.starts_with(training_prefix)) return {&epoch.training, name.substr(training_prefix.size())};
  return {epoch.validation.measured() ? &epoch.validation : &epoch.training, name};
}
/// "'loss', 'accuracy' and 'top-3'".
inline std::string names_of(const Scores& scores) {
  std::string names = "'loss'";
  const auto add = [&](std::string_view name) { names.append(", '").append(name).append("'"); };
  if (scores.accuracy == scores.accuracy) add("accuracy");
  for (int i = 0; i < scores.metrics(); ++i) add(scores.metric_name(i));
  return names;
}
/// Throws ArgumentError where a value whose better direction is known is watched in the other one.
inline void check_direction(const Watch& watch, const char* callback) {
  constexpr std::string_view higher[] = {"accuracy", "binary accuracy", "precision", "recall", "F1", "AUC", "R2"},
                             lower[] = {"loss", "mean absolute error"};
  std::string_view name = watch.name;
  if (name.starts_with(training_prefix)) name.remove_prefix(training_prefix.size());
  name = name.substr(0, name.find(" of "));  // "F1 of 3"
  const auto is_of = [&](const auto& names) { return std::find(std::begin(names), std::end(names), name) != std::end(names); };
  if (watch.higher_is_better ? !is_of(lower) : !is_of(higher) && !name.starts_with("top-")) return;
  const std::string right = watch.higher_is_better ? "lowest" : "highest";
  throw ArgumentError(std::string(callback) + " takes the " + (watch.higher_is_better ? "greatest" : "least") + " '" +
                      watch.name + "' for the best, and the " + (watch.higher_is_better ? "least" : "greatest") +
                      " one is: .watch = " + right + "(\"" + watch.name + "\")");
}
/// "the validation has 'loss', 'accuracy': name one of these, as in .watch = highest("accuracy")".
inline std::string what_there_is(const EpochRecord& record, const Watch& watch) {
  const Scores& scores = *scores_of(record, watch).first;
  const bool validation = &scores == &record.validation, measured = record.validation.measured();
  return std::string(validation ? "the validation"
                     : measured ? "the training"
                                : "the training, as there is no .validate set,") +
         " has " + names_of(scores) + ": name one of these, as in .watch = " +
         (scores.accuracy == scores.accuracy ? "highest(\"accuracy\")" : "lowest(\"loss\")");
}
[[noreturn]] SKEIN_INLINE void refuse_watch(const EpochRecord& record, const Watch& watch, const char* callback) {
  const auto [scores, name] = scores_of(record, watch);
  throw ArgumentError(
      text("{} watches '{}', which is not a number after epoch {}; {}", callback, watch.name, record.epoch,
           (scores->loss != scores->loss && name == "loss" ? "the loss is NaN: look at the data and lower the rate"
                                                           : what_there_is(record, watch))));
}
}  // namespace detail

SKEIN_INLINE double watched_value(const EpochRecord& epoch, const Watch& watch) {
  const auto [scores, name] = detail::scores_of(epoch, watch);
  if (name == "loss") return scores->loss;
  if (const double* value = scores->find(name)) return *value;
  return name == "accuracy" ? scores->accuracy : not_measured;
}

SKEIN_INLINE void check_watch(const EpochRecord& measured, const Watch& watch, const char* callback, bool more) {
  detail::check_direction(watch, callback);
  if (const double value = watched_value(measured, watch); more || value == value) return;
  throw ArgumentError("fit: " + std::string(callback) + " watches '" + watch.name + "', which this fit does not measure; " +
                      detail::what_there_is(measured, watch));
}

SKEIN_INLINE bool BestValue::improved_by(const EpochRecord& record, const Watch& watch, double least_change,
                                         const char* callback) {
  if (epoch == 0) detail::check_direction(watch, callback);
  const Scores& scores = *detail::scores_of(record, watch).first;
  const Of now_of = &scores == &record.validation ? Of::validation : Of::training;
  const double now = watched_value(record, watch);
  if (epoch == 0 && now != now) {
    if (record.made_no_step() && !scores.measured()) return false;
    detail::refuse_watch(record, watch, callback);
  }
  if (of == Of::validation && now_of == Of::training) return false;
  const bool first = epoch == 0 || (of == Of::training && now_of == Of::validation && now == now);
  const bool better = first || (watch.higher_is_better ? now > value + least_change : now < value - least_change);
  if (better) value = now, epoch = record.epoch;
  if (better || (of == Of::unknown && now_of == Of::validation)) of = now_of;
  return better;
}

}  // namespace skein::inline SKEIN_ABI::train

SKEIN_END_COLD
