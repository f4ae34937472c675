// SPDX-License-Identifier: Apache-2.0
// What a training keeps from one fit to the next, and in its files: where it stands, its history, the states of its callbacks;
// and how a loaded one goes on.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "../core/named_values.hpp"
#include "agree_on_failure.hpp"
#include "fit_facts.hpp"
#include "history.hpp"
#include "options.hpp"
#include "training_position.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train {
struct FileRecords;
}

namespace skein::inline SKEIN_ABI::train::detail {

/// The sums of all ranks.
nn::LossSums sum_over_ranks(SavedTraining& training, const nn::LossSums& own);
/// Adds up the sums of an epoch over the ranks, where they are each rank's own; `at` keeps those of each as well.
void reduce_sums(TrainingPosition& at, const FitFacts& facts, SavedTraining& training);

/// When a training is looked at. resume() makes it loaded, begin() outside_epoch, enter_epoch() and leave_epoch() what they say;
/// an exception leaves it where it was.
enum class FitMoment {
  outside_epoch,  ///< between two epochs, between two fits, or before the first: the sums are the position's
  in_epoch,       ///< its steps are made, or an exception ended them: the sums are the train step's
  loaded,         ///< the next fit goes on with the position, or begins anew with the weights
};

/// The state of one training. It knows nothing of steps or networks.
class FitState {
 public:
  const TrainingPosition& position() const { return position_; }
  TrainingPosition& position() { return position_; }
  /// The history of the fit that is going on, or that was stopped.
  const History& history() const { return history_; }
  History& history() { return history_; }
  /// The number of the epoch that is going on, over all fits, from 1.
  int epoch_number() const { return static_cast<int>(position_.base + position_.epoch) + 1; }

  /// It becomes what a file says, and goes on from there at the next fit.
  void resume(const FitFacts& facts, FileRecords&& records);
  /// A loaded one whose fit has not begun; and whether that fit goes on with it, or begins anew with its weights.
  bool loaded() const { return moment_ == FitMoment::loaded; }
  bool goes_on() const { return loaded() && (position_.running || position_.epoch > 0); }
  /// Epochs before the next fit.
  std::int64_t epochs_before() const { return goes_on() ? position_.base : position_.base + position_.epochs_begun(); }
  /// The seed of the samples' order: the one asked for, else that of a training that is loaded, for its next fit, else the
  /// model's.
  Seed seed_of(Seed asked, Seed of_model) const;
  /// What ranks compare of the seed, and of whether a loaded training goes on.
  void describe(Seed asked, Seed of_model, NamedValues& to) const;

  /// A fit begins: it goes on, or its epochs count on from the last one's. An epoch has so many steps. The callbacks, which live
  /// until forget_callbacks(), go on where those of a loaded training were, of a fit that had ended by their names.
  /// Returns whether it goes on. Throws ArgumentError or FileError where a loaded training cannot go on so; another fit may go on
  /// with it then. Collective where it goes on: of a callback that takes no state all ranks hear, the others by a CommError.
  bool begin(const EpochOrder& order, std::int64_t steps, Callbacks& callbacks, SavedTraining& training);
  void forget_callbacks() { callbacks_ = nullptr; }
  /// There is no fit to be made: the callbacks become those of the file. Collective, and throws, as begin().
  void end_without_fit(Callbacks& callbacks, SavedTraining& training);
  /// The fit of a rank that serves is over.
  void served() { position_.running = false, moment_ = FitMoment::outside_epoch; }

  /// The first step of an epoch is next; its last one was made.
  void enter_epoch() { moment_ = FitMoment::in_epoch; }
  void leave_epoch() { moment_ = FitMoment::outside_epoch; }
  bool within_epoch() const { return moment_ == FitMoment::in_epoch; }

  /// Writes the callbacks' states down.
  void keep_callbacks();
  /// The callbacks' states: of the fit that is going on, else as they were kept or loaded.
  const std::string& callback_state();
  /// The callbacks' states as they were written down, or loaded, last.
  const std::string& kept_callbacks() const { return callback_state_; }
  /// Why callback_state() is not of now: what the serialize() of a callback threw, which all ranks hear when rank 0 writes.
  const FileFailure& callback_failure() const { return callback_failure_; }

 private:
  /// Where the file's fit had all its epochs, or was ended for good, they may be others than its, on rank 0 too.
  void load_callbacks(Callbacks& callbacks, int rank) const;
  /// They get the states of the loaded training.
  void go_on_with(Callbacks& callbacks, int rank) const;
  /// The same on all ranks: where one's do not take them, all throw, that one what its callback does. Collective.
  static void load_together(SavedTraining& training, const std::function<void()>& load);

  TrainingPosition position_{};
  History history_{};
  Seed loaded_seed_{};              // of a loaded training, until its fit begins
  Callbacks* callbacks_ = nullptr;  // of the fit that is going on
  FileFailure callback_failure_;
  std::string callback_state_;    // of a loaded training, until its fit begins
  std::string loaded_optimizer_;  // the same: lines of NamedValues
  FitMoment moment_ = FitMoment::outside_epoch;
};

}  // namespace skein::inline SKEIN_ABI::train::detail

SKEIN_END_COLD

#if !SKEIN_COMPILED
#include "fit_state.ipp"
#endif
