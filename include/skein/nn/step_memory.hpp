// SPDX-License-Identifier: Apache-2.0
// What an executor keeps where its device reads it: the numbers of the step (ops::StepValues) and the sums of loss, weight and
// correct answers. Where the host works itself there is nothing to keep: it hands both over as values. Specialised by device.
#pragma once
#include <string>

#include "../device/device.hpp"
#include "../ops/step_values.hpp"
#include "loss/loss.hpp"

namespace skein::inline SKEIN_ABI::nn {

/// What a device reads of a call; `first`: the first sample of this rank, in the global batch.
template <class Call> constexpr ops::StepValues step_values(const Call& call, long first) {
  return {.key = call.key, .global_first = static_cast<std::uint64_t>(first), .loss_scale = call.loss_scale};
}

template <class Device> class StepMemory;

template <> class StepMemory<Cpu> {
 public:
  explicit StepMemory(Cpu = {}) {}
  /// The device's calls go to this one while the result lives.
  struct Here {};
  static constexpr Here enter() { return {}; }
  /// Writes the numbers of the step that begins; the device has them when what follows runs there.
  static constexpr void begin(const ops::StepValues&) {}
  static constexpr const ops::StepValues* values() { return nullptr; }
  /// From now on sums are those of an evaluation, or of training; the others are kept.
  static constexpr void turn_to(bool) {}
  static constexpr double* sums() { return nullptr; }
  static constexpr void clear_sums() {}
  /// Blocks until what the calling thread has given to the device is done: another thread may go on with the same memory.
  static constexpr void wait() {}
  /// Hands over without the host waiting: what the thread that takes over gives to the device comes behind what the one that
  /// handed over had given.
  static constexpr void take_over() {}
  static constexpr void hand_over() {}
  static constexpr long workspace_bytes() { return 0; }
  /// Lines on what libraries chose while the program ran, and on what they did not do.
  static std::string choices_text() { return {}; }
};

}  // namespace skein::inline SKEIN_ABI::nn
