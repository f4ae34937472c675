// SPDX-License-Identifier: Apache-2.0
// A callback that stops a fit.
#pragma once
#include <cstdint>

#include <skein/train/callbacks.hpp>

namespace support {

/// Stops the fit behind this step, or at the first one behind it: a PipeDream makes several at a time.
struct StopAt {
  std::int64_t step;
  void on_step_end(const skein::train::StepRecord& r, skein::train::FitControl& c) {
    if (r.step >= step) c.stop("enough");
  }
};

}  // namespace support
