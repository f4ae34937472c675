// SPDX-License-Identifier: Apache-2.0
// What a caller says of one training step, to a TrainStep as to the stages of a pipeline.
#pragma once
#include <cstdint>

#include "../core/config.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// What may change from step to step.
struct StepOptions {
  double lr_factor = 1;     ///< schedule: a factor of the optimizer's lr
  double clip_norm = 0;     ///< 0: no clipping
  bool accumulate = false;  ///< add to the gradients of the call before, which made no update
  bool update = true;       ///< false: gradients only (all but the last call of an accumulation)
  std::uint64_t key = 0;    ///< of this step's random numbers
  bool graph = true;        ///< may the step be captured and replayed, where the device has such; no pipeline captures its steps
  bool finite = false;      ///< on the host: the update is left out where the loss, or the norm to clip by, is not finite
};

}  // namespace skein::inline SKEIN_ABI::optim
