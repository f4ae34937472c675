// SPDX-License-Identifier: Apache-2.0
// Timed{loss, clock}: a training with this loss tells a StepClock where the time of its steps goes. The loss is what it was, and
// stands between forward and backward, where a clock has to be; a training without Timed looks at no clock.
//
//     sk::StepClock clock;
//     sk::Trainer trainer{model, sk::nn::Timed{sk::nn::CrossEntropy{}, clock}, sk::optim::Sgd{.lr = 0.1f}};
#pragma once
#include <utility>

#include "../../core/step_clock.hpp"
#include "../../device/device.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// The loss, and the clock of this rank's steps, which must outlive the training. On the host; in a pipeline, whose stages make
/// parts of steps, it does not compile.
template <class Loss> class Timed : public Loss {
 public:
  Timed(Loss loss, StepClock& clock) : Loss(std::move(loss)), clock_(&clock) {}
  StepClock& clock() const { return *clock_; }

 private:
  StepClock* clock_;
};

/// Is Loss a Timed.
template <class Loss> inline constexpr bool is_timed = false;
template <class Loss> inline constexpr bool is_timed<Timed<Loss>> = true;

/// Refuses, with one sentence, a Timed on a device of its own.
template <class Loss, class Device> consteval void assert_timed() {
  static_assert(on_host<Device> || !is_timed<Loss>,
                "Timed is for the host: a GPU's work ends later than it is launched, and its profiler has the times");
}

/// A lap of the clock of a Timed; of another loss nothing.
template <class Loss> void lap([[maybe_unused]] const Loss& loss, [[maybe_unused]] StepPart part) {
  if constexpr (is_timed<Loss>) loss.clock().lap(part);
}

}  // namespace skein::inline SKEIN_ABI::nn
