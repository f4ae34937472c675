// SPDX-License-Identifier: Apache-2.0
// StepClock: where the time of training steps goes, by the parts that every course draws. nn::Timed (nn/loss/timed.hpp) makes a
// training tell it.
#pragma once
#include <array>
#include <cstddef>
#include <string_view>

#include "config.hpp"

namespace skein::inline SKEIN_ABI {

/// The parts of a training step, in their order.
enum class StepPart { load, forward, loss, backward, synchronization, update };
/// How many parts there are.
inline constexpr std::size_t step_parts = 6;
/// "load", "forward", ...
constexpr std::string_view name_of(StepPart part) {
  constexpr std::string_view names[step_parts] = {"load", "forward", "loss", "backward", "synchronization", "update"};
  return names[static_cast<std::size_t>(part)];
}

/// Seconds of the parts of all steps so far, as the first worker of a rank sees them. Each part is what passed since the one
/// before it, so that the parts add up to the time of the loop. One thread.
/// - load: from the end of a step to the beginning of the next, so all that a loop does between them;
/// - backward: with what is sent meanwhile, and until the rank's slowest worker is done;
/// - synchronization: what the step waits for then, and a policy's work before and after a step;
/// - update: transforms of the gradient, and the optimizer.
class StepClock {
 public:
  /// The clock starts here: what passed before is no part.
  StepClock();
  /// What passed since the start, or since the last call, was this part.
  void lap(StepPart part);
  /// Sets all parts to zero, and starts again.
  void restart();

  double seconds(StepPart part) const { return seconds_[static_cast<std::size_t>(part)]; }
  /// The seconds of all parts together.
  double seconds() const;

 private:
  std::array<double, step_parts> seconds_{};
  double last_ = 0;
};

}  // namespace skein::inline SKEIN_ABI

#if !SKEIN_COMPILED
#include "step_clock.ipp"
#endif
