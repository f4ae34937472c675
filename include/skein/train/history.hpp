// SPDX-License-Identifier: Apache-2.0
// The history of a training: a record an epoch, and a record a step where the trainer was asked for them. Written as CSV for
// other programs and as an SVG picture for people. It can go into a checkpoint, so that a resumed training keeps its curves.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "../core/error.hpp"
#include "atomic_file.hpp"
#include "curves.hpp"
#include "records.hpp"
#include "text.hpp"

namespace skein::inline SKEIN_ABI {

/// What Trainer::fit returns. Iterates over its epochs: for (const auto& epoch : history) ...
class History {
 public:
  const std::vector<train::EpochRecord>& epochs() const { return epochs_; }
  /// Empty unless the trainer records steps.
  const std::vector<train::StepRecord>& steps() const { return steps_; }
  auto begin() const { return epochs_.begin(); }
  auto end() const { return epochs_.end(); }
  std::size_t size() const { return epochs_.size(); }
  bool empty() const { return epochs_.empty(); }

  /// The last epoch. Throws ArgumentError where there is none.
  const train::EpochRecord& back() const {
    if (epochs_.empty()) throw ArgumentError("the history has no epoch yet: fit at least one");
    return epochs_.back();
  }
  /// The epoch of the highest validation accuracy; without accuracies of the lowest validation loss; without a validation
  /// set the same of the training. The first of equals. Throws ArgumentError where there is none.
  const train::EpochRecord& best() const {
    const train::EpochRecord* best = &back();
    const bool validated = best->validation.measured();
    const auto merit = [&](const train::EpochRecord& epoch) {
      const train::Scores& scores = validated ? epoch.validation : epoch.training;
      return scores.accuracy == scores.accuracy ? scores.accuracy : -scores.loss;
    };
    for (auto epoch = epochs_.rbegin(); epoch != epochs_.rend(); ++epoch)
      if (merit(*epoch) >= merit(*best) || merit(*best) != merit(*best)) best = &*epoch;
    return *best;
  }
  /// The training loss of every recorded step, or of every epoch where no steps were recorded.
  std::vector<double> losses() const {
    std::vector<double> all;
    all.reserve(steps_.empty() ? epochs_.size() : steps_.size());
    for (const auto& step : steps_) all.push_back(step.loss);
    if (steps_.empty())
      for (const auto& epoch : epochs_) all.push_back(epoch.training.loss);
    return all;
  }
  /// The validation accuracy of every epoch.
  std::vector<double> accuracies() const {
    std::vector<double> all;
    for (const auto& epoch : epochs_) all.push_back(epoch.validation.accuracy);
    return all;
  }
  /// Wall time of all epochs.
  double seconds() const {
    double sum = 0;
    for (const auto& epoch : epochs_) sum += epoch.seconds;
    return sum;
  }

  /// For the trainer: room beforehand, so that add() allocates nothing.
  void reserve(std::size_t epochs, std::size_t steps = 0) {
    epochs_.reserve(epochs);
    steps_.reserve(steps);
  }
  void add(const train::EpochRecord& epoch) { epochs_.push_back(epoch); }
  void add(const train::StepRecord& step) { steps_.push_back(step); }
  /// The record that callbacks get to see and may add metrics to.
  train::EpochRecord& last() { return const_cast<train::EpochRecord&>(back()); }

  /// A line an epoch under a header line; an empty field is what was not measured. Numbers read back as the same bits.
  std::string csv() const {
    std::string text =
        "epoch,step,loss,accuracy,validation_loss,validation_accuracy,learning_rate,samples_per_second,"
        "exposed_communication,seconds";
    const int training = most_metrics(&train::EpochRecord::training), validation = most_metrics(&train::EpochRecord::validation);
    append_names(text, "", &train::EpochRecord::training, training);
    append_names(text, "validation_", &train::EpochRecord::validation, validation);
    text += '\n';
    for (const auto& epoch : epochs_) {
      train::append_integer(text, epoch.epoch);
      text += ',';
      train::append_integer(text, epoch.step);
      append_fields(text, {epoch.training.loss, epoch.training.accuracy, epoch.validation.loss, epoch.validation.accuracy,
                           epoch.learning_rate, epoch.samples_per_second, epoch.exposed_communication, epoch.seconds});
      for (int i = 0; i < training; ++i) append_fields(text, {epoch.training.metric_value(i)});
      for (int i = 0; i < validation; ++i) append_fields(text, {epoch.validation.metric_value(i)});
      text += '\n';
    }
    return text;
  }
  /// A line a recorded step.
  std::string steps_csv() const {
    std::string text = "step,epoch,loss,accuracy,learning_rate,samples_per_second,exposed_communication,seconds\n";
    for (const auto& step : steps_) {
      train::append_integer(text, step.step);
      text += ',';
      train::append_integer(text, step.epoch);
      append_fields(text, {step.loss, step.accuracy, step.learning_rate, step.samples_per_second, step.exposed_communication,
                           step.seconds});
      text += '\n';
    }
    return text;
  }
  void write_csv(const std::string& path) const { write(path, csv()); }
  void write_steps_csv(const std::string& path) const { write(path, steps_csv()); }
  /// Two panels, loss and accuracy, training and validation over the epochs: a self-contained picture for any browser.
  std::string svg() const { return train::draw_curves(epochs_, steps_); }
  void write_svg(const std::string& path) const { write(path, svg()); }

  template <class Archive> void serialize(Archive& archive, unsigned) { (archive & epochs_ & steps_); }

 private:
  using Pass = train::Scores train::EpochRecord::*;
  int most_metrics(Pass pass) const {
    int most = 0;
    for (const auto& epoch : epochs_) most = (epoch.*pass).metrics() > most ? (epoch.*pass).metrics() : most;
    return most;
  }
  void append_names(std::string& text, const char* prefix, Pass pass, int count) const {
    for (int i = 0; i < count; ++i)
      for (const auto& epoch : epochs_)
        if ((epoch.*pass).metrics() > i) {
          text += ',';
          train::append_csv_field(text, prefix + std::string((epoch.*pass).metric_name(i)));
          break;
        }
  }
  static void append_fields(std::string& text, std::initializer_list<double> values) {
    for (const double value : values) {
      text += ',';
      train::append_number(text, value);
    }
  }
  static void write(const std::string& path, const std::string& text) {
    train::AtomicFile file(path);
    file.append(text.data(), text.size());
    file.commit();
  }

  std::vector<train::EpochRecord> epochs_;
  std::vector<train::StepRecord> steps_;
};

}  // namespace skein::inline SKEIN_ABI
