// SPDX-License-Identifier: Apache-2.0
// The history of a training: a record an epoch, and a record a step where the trainer was asked for them. Written as CSV for
// other programs and as an SVG picture for people. A checkpoint has that of a fit that was stopped, so that the fit that goes on
// keeps its curves.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "../core/error.hpp"
#include "../core/atomic_file.hpp"
#include "curves.hpp"
#include "records.hpp"
#include "text.hpp"
#include "watch.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI {

/// What Trainer::fit returns. Iterates over its epochs: for (const auto& epoch : history) ...
class History {
 public:
  History() = default;
  History(const History&);
  History(History&&) noexcept;
  History& operator=(const History&);
  History& operator=(History&&) noexcept;
  ~History();
  const std::vector<train::EpochRecord>& epochs() const { return epochs_; }
  /// Empty unless the trainer records steps. After a restart those before the commit are rank 0's on every rank.
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
  /// The epoch whose watched value is the best, the first of equals: as it comes, the one of the lowest validation loss, else of
  /// the lowest training loss, which callbacks take too; best(train::highest("accuracy")). Throws ArgumentError where no epoch
  /// has a value.
  const train::EpochRecord& best(const train::Watch& watch = {}) const;
  /// The training loss of every recorded step, or of every epoch where no steps were recorded. Where the losses of steps differ
  /// from rank to rank (SyncEvery, ModelAverage, Gossip), those before the commit that a fit has gone on from are rank 0's.
  std::vector<double> losses() const;
  /// The validation accuracy of every epoch.
  std::vector<double> accuracies() const;
  /// Wall time of all epochs.
  double seconds() const;

  /// For the trainer: room beforehand, so that add() allocates nothing.
  void reserve(std::size_t epochs, std::size_t steps = 0);
  void add(const train::EpochRecord& epoch) { epochs_.push_back(epoch); }
  void add(const train::StepRecord& step) { steps_.push_back(step); }
  /// The record that callbacks get to see and may add metrics to.
  train::EpochRecord& last() {
    (void)back();
    return epochs_.back();
  }

  /// A line an epoch under a header line; an empty field is what was not measured. Numbers read back as the same bits.
  std::string csv() const;
  /// A line a recorded step.
  std::string steps_csv() const;
  void write_csv(const std::string& path) const { write(path, csv()); }
  void write_steps_csv(const std::string& path) const { write(path, steps_csv()); }
  /// Two plots, loss and accuracy (where there is none, the validation's metrics), training and validation over the epochs, with
  /// the loss of recorded steps as a faint line: a self-contained picture for any browser.
  std::string svg() const { return train::draw_curves(epochs_, steps_); }
  void write_svg(const std::string& path) const { write(path, svg()); }

  template <class Archive> void serialize(Archive& archive, unsigned) { (archive & epochs_ & steps_); }

 private:
  using Pass = train::Scores train::EpochRecord::*;
  std::vector<std::string_view> metric_names(Pass pass) const;
  static void append_metrics(std::string& text, const train::Scores& scores, const std::vector<std::string_view>& names);
  static void append_fields(std::string& text, std::initializer_list<double> values);
  static void write(const std::string& path, const std::string& text);

  std::vector<train::EpochRecord> epochs_;
  std::vector<train::StepRecord> steps_;
};

}  // namespace skein::inline SKEIN_ABI

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "history.ipp"
#endif
