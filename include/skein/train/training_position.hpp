// SPDX-License-Identifier: Apache-2.0
// Where a training stands, as its file has it.
#pragma once
#include <cstdint>

#include "../nn/loss/loss.hpp"

namespace skein::inline SKEIN_ABI::train {

/// Where a training stands: epochs before this fit, epochs and steps of it, and the sums of the epoch that is going on.
struct TrainingPosition {
  std::int64_t base = 0, epoch = 0, step = 0;
  std::int64_t samples = 0;
  nn::LossSums sums{};
  bool running = false;         // saved within a fit
  std::int64_t first_step = 0;  // optimizer steps before this fit: schedules count from there
  double rate_factor = 1;       // that callbacks have set

  template <class Archive> void serialize(Archive& archive, unsigned) {
    (archive & base & epoch & step & samples & sums.loss & sums.weight & sums.correct & running & first_step & rate_factor);
  }
};

}  // namespace skein::inline SKEIN_ABI::train
