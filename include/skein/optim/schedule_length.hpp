// SPDX-License-Identifier: Apache-2.0
// Lengths of schedules: a number of steps, epochs(3), or share(0.1) of the whole fit, which a fit turns into steps.
#pragma once
#include <cstdint>

#include "../core/error.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// How long a fit is: what a schedule in epochs or in shares of the fit is bound to.
struct FitLength {
  std::int64_t steps = 0;            ///< optimizer steps of the whole fit
  std::int64_t steps_per_epoch = 0;  ///< optimizer steps of an epoch
  bool refuses_longer = true;        ///< a warm-up that is longer than the fit, a first part of then() that is as long
};

/// A length of a schedule: a number of optimizer steps, of epochs, or a share of the whole fit.
class Length {
 public:
  enum class Unit { steps, epochs, share };

  constexpr Length(std::int64_t steps) : value_(static_cast<double>(steps)) {}
  constexpr Length(Unit unit, double value) : value_(value), unit_(unit) {}

  /// Whether it is a number of steps already.
  constexpr bool known() const { return unit_ == Unit::steps; }
  /// In steps. Throws ArgumentError where it is not known: outside of a fit, before bound().
  double steps() const;
  /// The same length in steps of this fit; at least one. Throws ArgumentError for a warm-up that is longer than the fit, and
  /// where the fit does not say what the length is in.
  Length bound(const FitLength& fit) const;
  constexpr double value() const { return value_; }
  /// The same length, as that of a warm-up: bound() refuses one that is longer than the fit.
  constexpr Length of_warmup() const {
    Length same = *this;
    same.of_warmup_ = true;
    return same;
  }

 private:
  double value_;
  Unit unit_ = Unit::steps;
  bool of_warmup_ = false;
};
/// So many epochs of the fit: `step(epochs(30))`. May be a fraction.
constexpr Length epochs(double count) { return {Length::Unit::epochs, count}; }
/// A share of the steps of the whole fit: `warmup(share(0.05))`.
constexpr Length share(double of_the_fit) { return {Length::Unit::share, of_the_fit}; }
/// The whole fit: the length that `cosine()` has.
inline constexpr Length whole_fit = share(1);

}  // namespace skein::inline SKEIN_ABI::optim

#if !SKEIN_COMPILED
#include "schedule_length.ipp"
#endif
