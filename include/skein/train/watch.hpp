// SPDX-License-Identifier: Apache-2.0
// Watch: the number that a callback looks at after each epoch, and which direction is better. One default for all callbacks: the
// loss of the validation, or of the training where there is no validation set.
#pragma once
#include <string>
#include <string_view>
#include <utility>

#include "../core/error.hpp"
#include "records.hpp"

namespace skein::inline SKEIN_ABI::train {

/// `.watch = highest("accuracy")`, `.watch = lowest("mean absolute error")`. The name is "loss", "accuracy" or that of a
/// metric of `.metrics`: of the validation, or of the training where there is no validation set. "training loss" and
/// "training accuracy" are the training's in any case.
struct Watch {
  std::string name = "loss";
  bool higher_is_better = false;
};
/// The greatest value of this name is the best.
inline Watch highest(std::string name) { return {std::move(name), true}; }
/// The least value of this name is the best.
inline Watch lowest(std::string name) { return {std::move(name), false}; }

/// The watched value of an epoch. NaN where it was not measured.
double watched_value(const EpochRecord& epoch, const Watch& watch);

/// Throws ArgumentError, with the callback's name, where the record of an epoch that is still to come, with what a fit measures,
/// has no such value, or where the other direction is better. `more`: the record may get values that are not known yet.
void check_watch(const EpochRecord& measured, const Watch& watch, const char* callback, bool more = false);

namespace detail {
/// Throws ArgumentError, with the callback's name: the watched value of the epoch is no number.
[[noreturn]] void refuse_watch(const EpochRecord& record, const Watch& watch, const char* callback);
}  // namespace detail

/// The best value so far of what is watched, and its epoch. Part of the state of a callback.
struct BestValue {
  /// What the best value was measured on. Those of a training and of a validation are not compared.
  enum class Of { unknown, training, validation };  // unknown: of an older file
  double value = 0;
  int epoch = 0;  ///< 0: none yet
  Of of = Of::unknown;

  /// Whether this epoch is better than all before it, by more than `least_change`; it is the best then. NaN is never better, nor
  /// is an epoch whose validation has measured nothing, once one has; the first that has is better than those before it. Throws
  /// ArgumentError, with the callback's name, where the value of the first epoch is not there or NaN, though it made steps.
  bool improved_by(const EpochRecord& record, const Watch& watch, double least_change, const char* callback);

  static constexpr unsigned archive_version = 1;  // 0: files without `of`
  template <class Archive> void serialize(Archive& archive, unsigned version) {
    (archive & value & epoch);
    if (version >= 1) (archive & of);
    else of = Of::unknown;
  }
};

}  // namespace skein::inline SKEIN_ABI::train

#if !SKEIN_COMPILED
#include "watch.ipp"
#endif
