// SPDX-License-Identifier: Apache-2.0
// The bodies of history.hpp.
#pragma once
#include <algorithm>

#include "history.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI {

SKEIN_INLINE History::History(const History&) = default;
SKEIN_INLINE History::History(History&&) noexcept = default;
SKEIN_INLINE History& History::operator=(const History&) = default;
SKEIN_INLINE History& History::operator=(History&&) noexcept = default;
SKEIN_INLINE History::~History() = default;

SKEIN_INLINE const train::EpochRecord& History::best(const train::Watch& watch) const {
  (void)back();
  train::BestValue value;
  const train::EpochRecord* best = nullptr;
  for (const train::EpochRecord& epoch : epochs_)
    if (const double now = train::watched_value(epoch, watch); now == now && value.improved_by(epoch, watch, 0, "history.best()"))
      best = &epoch;
  if (!best) train::detail::refuse_watch(back(), watch, "history.best()");
  return *best;
}

SKEIN_INLINE std::vector<double> History::losses() const {
  std::vector<double> all;
  all.reserve(steps_.empty() ? epochs_.size() : steps_.size());
  for (const auto& step : steps_) all.push_back(step.loss);
  if (steps_.empty())
    for (const auto& epoch : epochs_) all.push_back(epoch.training.loss);
  return all;
}

SKEIN_INLINE std::vector<double> History::accuracies() const {
  std::vector<double> all;
  for (const auto& epoch : epochs_) all.push_back(epoch.validation.accuracy);
  return all;
}

SKEIN_INLINE double History::seconds() const {
  double sum = 0;
  for (const auto& epoch : epochs_) sum += epoch.seconds;
  return sum;
}

SKEIN_INLINE void History::reserve(std::size_t epochs, std::size_t steps) {
  epochs_.reserve(epochs);
  steps_.reserve(steps);
}

SKEIN_INLINE std::string History::csv() const {
  std::string text =
      "epoch,step,loss,accuracy,validation_loss,validation_accuracy,learning_rate,samples_per_second,"
      "exposed_communication,seconds";
  const auto training = metric_names(&train::EpochRecord::training), validation = metric_names(&train::EpochRecord::validation);
  for (const std::string_view name : training) train::append_csv_field(text += ',', std::string(name));
  for (const std::string_view name : validation) train::append_csv_field(text += ',', "validation_" + std::string(name));
  text += '\n';
  for (const auto& epoch : epochs_) {
    train::append_integer(text, epoch.epoch);
    text += ',';
    train::append_integer(text, epoch.step);
    append_fields(text, {epoch.training.loss, epoch.training.accuracy, epoch.validation.loss, epoch.validation.accuracy,
                         epoch.learning_rate, epoch.samples_per_second, epoch.exposed_communication, epoch.seconds});
    append_metrics(text, epoch.training, training);
    append_metrics(text, epoch.validation, validation);
    text += '\n';
  }
  return text;
}

SKEIN_INLINE std::string History::steps_csv() const {
  std::string text = "step,epoch,loss,accuracy,learning_rate,samples_per_second,exposed_communication,seconds\n";
  for (const auto& step : steps_) {
    train::append_integer(text, step.step);
    text += ',';
    train::append_integer(text, step.epoch);
    append_fields(
        text, {step.loss, step.accuracy, step.learning_rate, step.samples_per_second, step.exposed_communication, step.seconds});
    text += '\n';
  }
  return text;
}

/// Collects the names from all epochs, in the order in which they appeared.
SKEIN_INLINE std::vector<std::string_view> History::metric_names(Pass pass) const {
  std::vector<std::string_view> names;
  for (const auto& epoch : epochs_)
    for (int i = 0; i < (epoch.*pass).metrics(); ++i)
      if (const std::string_view name = (epoch.*pass).metric_name(i); std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
  return names;
}

SKEIN_INLINE void History::append_metrics(std::string& text, const train::Scores& scores,
                                          const std::vector<std::string_view>& names) {
  for (const std::string_view name : names) {
    const double* value = scores.find(name);
    append_fields(text, {value ? *value : train::not_measured});
  }
}

SKEIN_INLINE void History::append_fields(std::string& text, std::initializer_list<double> values) {
  for (const double value : values) {
    text += ',';
    train::append_number(text, value);
  }
}

SKEIN_INLINE void History::write(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.append(text.data(), text.size());
  file.commit();
}

}  // namespace skein::inline SKEIN_ABI

SKEIN_END_COLD
