// SPDX-License-Identifier: Apache-2.0
// Schedules that a fit refuses beforehand: those that leave most of it without a rate.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "../core/error.hpp"
#include "../core/text.hpp"
#include "../optim/schedule.hpp"

SKEIN_BEGIN_COLD

namespace skein::inline SKEIN_ABI::train::detail {

/// Throws ArgumentError for an optimizer that changes nothing.
inline void check_rate(double rate) {
  if (rate == 0)
    throw ArgumentError(
        "fit: the rate of the optimizer, .lr, is 0, so that nothing is trained: give one above 0; trainer.evaluate(data) looks "
        "at a data set without training");
}
/// The step from which on a schedule is 0 until the end of a fit; in a long fit of some steps of its last hundredth, and where
/// these are 0, of a schedule that stays so.
inline std::int64_t end_of(const optim::Schedule& schedule, std::int64_t steps) {
  constexpr std::int64_t most = 100'000;
  std::int64_t end = steps;
  if (steps <= most) {
    while (end > 0 && schedule(end - 1) == 0) --end;
    return end;
  }
  const std::int64_t hundredth = steps / 100 + 2;
  for (std::int64_t i = 0; i < 1000; ++i)  // at no equal distances, which a period of the schedule might have
    if (const std::int64_t step = steps - 1 - i * 2654435761 % hundredth; schedule(step) != 0) return step + 1;
  std::int64_t begin = -1;
  for (end -= hundredth; end - begin > 1;) {
    const std::int64_t middle = begin + (end - begin) / 2;
    (schedule(middle) == 0 ? end : begin) = middle;
  }
  return end;
}
/// Throws ArgumentError where the end of a fit has the rate 0, since the schedule is shorter.
inline void check_end(const optim::Schedule& schedule, std::int64_t steps) {
  const std::int64_t end = end_of(schedule, steps);
  if (steps - end <= 1 + steps / 100) return;
  throw ArgumentError(text(
      "fit: the .schedule is 0 from step {} on, so that the last {} of the {} steps train nothing: leave out its length, as in "
      "cosine(), which is that of the fit then{}",
      end + 1, steps - end, steps,
      schedule.counts_steps() ? "; a bare number counts steps, sk::optim::epochs(5) are epochs" : ""));
}

/// The factor of the rate in a step, from 0. Throws ArgumentError for one that is none.
inline double factor_of(const optim::Schedule& schedule, std::int64_t step) {
  const auto factor = static_cast<double>(schedule(step));
  if (!(factor >= 0 && factor <= 3.4e38)) [[unlikely]]
    throw ArgumentError(
        text("fit: the .schedule returns {} for step {}: a factor of the rate is finite and not negative, and 1 is the whole "
             "rate",
             factor, step + 1));
  return factor;
}

/// The least and the greatest factor of steps [begin, end): of some of them, where they are many. Throws ArgumentError where one
/// of these is negative or NaN: a fit may be stopped before one that is too large.
struct FactorRange {
  float least = 0, most = 0;

  FactorRange(const optim::Schedule& schedule, std::int64_t begin, std::int64_t end) {
    if (begin >= end) return;
    least = most = schedule(begin);
    const auto look = [&](std::int64_t step) {
      const float factor = schedule(step);
      if (!(factor >= 0)) (void)factor_of(schedule, step);  // throws
      least = std::min(least, factor), most = std::max(most, factor);
    };
    for (std::int64_t i = begin, stride = std::max<std::int64_t>(1, (end - begin) / 1000); i < end; i += stride) look(i);
    look(end - 1);
  }
};
/// Throws ArgumentError for a schedule that is infinite in the first of many epochs, for one that is a rate where a factor of the
/// rate is wanted, and for one that has fallen to its end before the last step of the first of many epochs, since its lengths are
/// steps where epochs were meant.
inline void check_schedule(const optim::Schedule& schedule, std::int64_t steps, std::int64_t of_epoch) {
  check_end(schedule, steps);
  const FactorRange first(schedule, 0, std::min(steps, of_epoch)), rest(schedule, std::min(steps, of_epoch), steps);
  if (const float most = std::max(first.most, rest.most); most <= 0.05f)
    throw ArgumentError(
        text("fit: the .schedule is {} at most: it is a factor of the optimizer's rate and not a rate: let it be 1 for the whole "
             "rate, and give the rate to the optimizer, .lr",
             most));
  if (steps < 3 * of_epoch || of_epoch < 1) return;
  for (std::int64_t i = 0; std::isinf(first.most) && i < of_epoch; ++i) (void)factor_of(schedule, i);  // throws
  if (!schedule.counts_steps()) return;       // nobody took epochs for steps
  const float last = schedule(of_epoch - 1);  // a schedule that falls with the second epoch means epochs
  const bool ended = schedule.has_all_steps() && rest.least == rest.most && rest.most <= 0.5f * first.most && last == rest.most;
  if (ended || (rest.most <= 0.01f * first.most && last <= 0.01f * first.most))
    throw ArgumentError(
        text("fit: the .schedule falls from {} to {} within the first of {} epochs and does not rise again: a bare number counts "
             "steps, of which an epoch has {}; sk::optim::epochs(30) are epochs",
             first.most, rest.most, steps / of_epoch, of_epoch));
}

}  // namespace skein::inline SKEIN_ABI::train::detail

SKEIN_END_COLD
