// SPDX-License-Identifier: Apache-2.0
// Where a training stands, as its file has it: epochs, steps, the sums of the epoch that is going on, and what decides which
// samples an epoch's steps serve, so that a training does not go on in the middle of an epoch with other ones.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../core/random.hpp"
#include "../nn/loss/loss.hpp"
#include "fit_control.hpp"

namespace skein::inline SKEIN_ABI::train {

/// What decides which samples each step of an epoch serves.
struct EpochOrder {
  std::uint64_t seed = 0;
  std::int64_t batch = 0;    ///< samples of a batch over all ranks; 0: not known (a file of an older version)
  std::int64_t samples = 0;  ///< of the data set; Partition::local: of all shards
  std::uint64_t shards = 0;  ///< Partition::local: a hash of the shards' sizes; else 0
  bool shuffle = true, keeps_last = true;

  template <class Archive> void serialize(Archive& archive, unsigned) {
    (archive & seed & batch & samples & shards & shuffle & keeps_last);
  }
};

/// Where a training stands: epochs before this fit, epochs and steps of it, and the sums of the epoch that is going on.
struct TrainingPosition {
  static constexpr unsigned archive_version = 4;
  std::int64_t base = 0, epoch = 0, step = 0;
  std::int64_t samples = 0;
  nn::LossSums sums{};
  bool running = false;         // saved within a fit
  std::int64_t first_step = 0;  // optimizer steps before this fit: schedules count from there
  double rate_factor = 1;       // that callbacks have set
  EpochOrder order{};           // these three from version 1 on
  bool ended = false;           // a callback ended the fit for good; from version 2 on
  /// Where a step's sums are each rank's own: the three numbers of `sums` of each; from version 3 on.
  std::vector<double> sums_of_ranks{};
  /// Optimizer steps of an epoch, and by how many steps a schedule in epochs or shares of the fit is ahead of those that were
  /// made, since the epochs before had another number of them; 0: not known, none. These three from version 4 on.
  std::int64_t updates_of_epoch = 0, schedule_shift = 0;
  /// The name of rank 0's callback that has asked for the weights that are kept; empty where it has none, or none has asked;
  /// unknown_keeper where another rank's has, and in files before version 4.
  std::string kept_by{};

  /// The fit had all its epochs, or a callback ended it for good: it was not stopped on its way.
  bool fit_is_over() const { return !running || ended; }
  /// Epochs of the fit, with the one that is going on.
  std::int64_t epochs_begun() const { return epoch + (step > 0 ? 1 : 0); }

  template <class Archive> void serialize(Archive& archive, unsigned version) {
    (archive & base & epoch & step & samples & sums.loss & sums.weight & sums.correct & running);
    if (version >= 1) (archive & first_step & rate_factor & order);
    if (version >= 2) (archive & ended);
    if (version >= 3) (archive & sums_of_ranks);
    if (version >= 4) (archive & updates_of_epoch & schedule_shift & kept_by);
    else kept_by = unknown_keeper;
    if constexpr (Archive::is_loading::value)
      if (base < 0 || epoch < 0 || step < 0 || samples < 0 || first_step < 0 || order.batch < 0 || base > 1'000'000'000 ||
          epoch > 1'000'000'000 || !(rate_factor >= 0) || updates_of_epoch < 0 || schedule_shift > (std::int64_t{1} << 53) ||
          schedule_shift < -(std::int64_t{1} << 53))
        archive.refuse("the place of the training is none: epochs, steps and samples are 0 or more");
  }
};

/// A hash of the shards' sizes; 0 where there are none.
std::uint64_t hash_of_shards(std::span<const std::int64_t> sizes);
/// Throws ArgumentError where the training, which stopped within an epoch, would go on with other samples than it began with.
void check_order(const TrainingPosition& at, const EpochOrder& now);
/// A line on stderr for each hyper-parameter of its optimizer (lines of NamedValues; none of an older file) with which a loaded
/// training goes on otherwise, and at an epoch's begin for another batch or number of samples.
void say_others(std::string_view optimizer_then, std::string_view optimizer_now, const TrainingPosition& at,
                const EpochOrder& now);
/// A line on stderr: the training had so many callbacks when it was saved, and goes on without any.
void say_no_callbacks(std::uint64_t saved);
/// Prints a line about a callback of this rank that rank 0 did not have when the training was saved.
void say_begins_anew(const std::string& callback, int rank);
/// Throws ArgumentError where a loaded training has had all epochs that it is asked for.
void check_epochs(const TrainingPosition& at, int epochs);

}  // namespace skein::inline SKEIN_ABI::train

#if !SKEIN_COMPILED
#include "training_position.ipp"
#endif
