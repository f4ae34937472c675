// SPDX-License-Identifier: Apache-2.0
// GradientSink: who is told, while backward goes on, which gradients are final, and who adds up what layers sum over ranks: a
// policy. Called by worker 0 of the rank alone.
#pragma once
#include "../../core/config.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// Who hears of final gradients; it owns none of them.
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  /// Gradients [begin, end) of the arena are final; empty: a chance to poll.
  virtual void gradient_ready(long begin, long end) = 0;
  /// n values become their sums over ranks. All workers stand in a barrier meanwhile.
  virtual void reduce_statistics(double* values, long n) = 0;
};

/// The sinks of one call; null: nobody listens.
struct ExecutorSinks {
  GradientSink *gradients = nullptr, *statistics = nullptr;
};

}  // namespace skein::inline SKEIN_ABI::nn
