// SPDX-License-Identifier: Apache-2.0
// What a user gives ModelAverage: the period, the outer optimizer of DiLoCo (Douillard et al. 2023), the options.
#pragma once
#include <concepts>
#include <cstdint>

#include "../../optim/sgd.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// The unit of a period: optimizer steps or epochs.
enum class Every { step, epoch };

/// After how many steps, or epochs, models are averaged: Period<4>, Period<2, Every::epoch>.
template <int Length, Every Unit = Every::step> struct Period {
  static_assert(Length >= 1, "Period<N> of ModelAverage: a period is 1 step (or epoch) or more");
  static constexpr int length = Length;
  static constexpr Every unit = Unit;
};

/// No outer optimizer: the ranks take the mean itself.
struct PlainAverage {};

/// The outer optimizer of ModelAverage: its gradient is the difference between a rank's old weights and the mean. Nesterov's
/// momentum of 0.9 and a rate of 0.7, unless another is given: DiLoCo{optim::Sgd{.lr = 1}}.
template <class Outer = optim::Sgd> struct DiLoCo {
  DiLoCo() requires std::same_as<Outer, optim::Sgd> : outer{.lr = 0.7f, .momentum = 0.9, .nesterov = true} {}
  explicit DiLoCo(Outer o) : outer(o) {}
  Outer outer;
};

/// Options of ModelAverage: what is averaged, when, and with which weights.
struct ModelAverageOptions {
  bool weighted = true;      ///< weight each rank by its samples since the last average; false: all ranks count the same
  bool state = false;        ///< also average the optimizer's state
  std::int64_t first = 0;    ///< no average in the first so many steps: another policy keeps the ranks together
  std::int64_t warm_up = 0;  ///< average after each of the first so many steps
  int fragments = 1;         ///< number of parts of the parameters; each part is averaged in another step of the period
  int delay = 0;             ///< steps from the start of an average to its arrival, less than a period; not with .warm_up
  double keep = 0;           ///< when a delayed average arrives: new weight = keep * own + (1 - keep) * average
  bool at_end = true;        ///< average at the end of a fit, so that all ranks have one model; SyncEvery or SyncFirst beside it
                             ///< do so in any case
};

namespace detail {
/// An optimizer, or none; not one that evaluates the loss itself.
template <class Outer> inline constexpr bool fits_as_outer = std::same_as<Outer, PlainAverage> || optim::Optimizer<Outer>;
/// In place of the period that ModelAverage{world} was not given.
struct NoPeriod {};
template <class When> inline constexpr bool has_a_period = !std::same_as<When, NoPeriod>;
template <int N, Every U> void takes_period(const Period<N, U>&);
/// A Period, or what is derived from one. To ask it does not instantiate a Period: Period<0> is refused in fewer lines so.
template <class When> inline constexpr bool is_period = requires(const When& when) { takes_period(when); };
template <int N, Every U> inline constexpr bool is_period<Period<N, U>> = true;
template <class Outer> Outer outer_of(const DiLoCo<Outer>&);
/// A DiLoCo, or what is derived from one.
template <class Given> inline constexpr bool is_outer = requires(const Given& given) { outer_of(given); };
template <class When> inline constexpr bool period_or_none = is_period<When> || !has_a_period<When>;
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::parallel
