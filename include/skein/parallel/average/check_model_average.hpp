// SPDX-License-Identifier: Apache-2.0
// Options of ModelAverage that are no numbers of steps, or do not go with the period or the outer optimizer, are refused here.
#pragma once
#include <cstdint>
#include <string>

#include "../../core/error.hpp"
#include "../../optim/transform/transform.hpp"
#include "model_average_options.hpp"

namespace skein::inline SKEIN_ABI::parallel::detail {

/// Throws ArgumentError for the first option of a ModelAverage of period When that cannot be.
template <class When, class Outer> void check_model_average(const ModelAverageOptions& options, const Outer& outer) {
  const auto demand = [](bool holds, const char* text) {
    if (!holds) throw ArgumentError(std::string("ModelAverage: ") + text);
  };
  demand(options.fragments >= 1, ".fragments is at least 1");
  demand(options.first >= 0 && options.warm_up >= 0, ".first and .warm_up are numbers of steps: 0 or more");
  demand(options.delay >= 0, ".delay is a number of steps: 0 or more");
  demand(When::unit == Every::epoch || options.delay < When::length || options.delay == 0,
         ".delay must be shorter than the period: a part would not have arrived before it is sent again");
  demand(
      options.warm_up == 0 || options.delay == 0,
      ".warm_up and .delay do not go together: in the warm-up a part would be sent again before it has arrived; leave one out");
  demand(options.keep >= 0 && options.keep < 1, ".keep is a share: at least 0, less than 1");
  if constexpr (!std::same_as<Outer, PlainAverage>) {
    optim::check(outer);
    demand(optim::groups_of(outer).empty(),
           "the outer optimizer has .groups, and makes one step of all parameters: give them to the optimizer of the ranks");
  } else {
    static_cast<void>(outer);
  }
}

/// Throws ArgumentError: what was sent `steps` ago, at the end of an epoch, has not arrived and is to be sent again. All ranks
/// throw after the same step.
[[noreturn]] inline void refuse_long_delay(int delay, std::int64_t steps) {
  throw ArgumentError(
      skein::text("ModelAverage: .delay is {} steps and longer than the period, which has {}: a part would not have arrived "
                  "before it is sent again; take a shorter .delay, or more epochs a period",
                  delay, steps));
}

}  // namespace skein::inline SKEIN_ABI::parallel::detail
