// SPDX-License-Identifier: Apache-2.0
// What a training step does otherwise on a device of its own: the batch is brought there, the step may be captured once and
// replayed, and its sums stay there until somebody wants them. Where the host computes itself there is nothing of that: the
// functions here are empty, but those of the epoch's sums. Specialised by device.
#pragma once
#include <string>
#include <string_view>

#include "../../data/host_memory.hpp"
#include "../../device/batch_view.hpp"
#include "../../nn/step_memory.hpp"

namespace skein::inline SKEIN_ABI::train {

/// What one captured step was captured with: another of these is another step.
struct CapturedStepKey {
  const void *x = nullptr, *labels = nullptr, *targets = nullptr;
  long pitch = 0, target_pitch = 0, count = 0;
  double expected_weight = 1, clip = 0, gradient_factor = 1;
  bool accumulate = false, update = true, exchange = false;
  long global_count = 0;
  friend bool operator==(const CapturedStepKey&, const CapturedStepKey&) = default;
  /// Alike for all ranks, whose shares of a batch may differ, and lie elsewhere: they must launch, capture and replay at the same
  /// steps.
  bool alike(const CapturedStepKey& o) const {
    CapturedStepKey same = o;
    same.x = x, same.labels = labels, same.targets = targets;
    same.count = count;
    return *this == same;
  }
};

/// What a batch is brought to the device for: an evaluation, a step that a rank makes by itself, or one that all ranks make
/// together, whose batches lie at the same places whenever they make it.
enum class BatchUse { evaluation, own_step, common_step };

/// What the batch of a step of these StepParts is brought to the device for.
template <class Parts> BatchUse batch_use(const Parts& parts) {
  const auto& state = parts.policy_state;
  return state.ranks() > 1 && state.synchronizes_gradients() ? BatchUse::common_step : BatchUse::own_step;
}

/// What the batches of one call have room for on a device, in values of each kind.
struct BatchRoom {
  long x = 0, tokens = 0, labels = 0, targets = 0;
};

template <class Scalar, class Device> class StepDevice;

template <class Scalar> class StepDevice<Scalar, Cpu> {
 public:
  /// What a step returns.
  using Sums = nn::LossSums;
  /// So many batches must stay as they are while later ones are asked for; and in what memory they are best.
  static constexpr int held = 0;
  static constexpr data::HostMemory host_memory() { return {}; }

  explicit StepDevice(Cpu = {}, const BatchRows& = {}) {}
  static constexpr void reserve(const BatchRoom&) {}
  /// The batch where the device reads it; valid until finish().
  template <class Given> static decltype(auto) upload(const Given& batch, BatchUse) { return batch_view<Scalar, Cpu>(batch); }
  static constexpr void finish() {}
  /// Launches a step: a StepLaunch (step_launch.hpp). The flag: it may be captured.
  template <class Launch> void run(nn::StepMemory<Cpu>&, bool, const Launch& launch) { launch.all_stages(); }
  /// Around the part of a step whose kernels have arguments that change.
  struct Arguments {};
  static constexpr Arguments arguments(nn::StepMemory<Cpu>&) { return {}; }
  static constexpr void forget() {}
  /// Steps that were launched again as they were captured.
  static constexpr long replays() { return 0; }

  void add(const nn::LossSums& sums) { totals_ += sums; }
  nn::LossSums totals() const { return totals_; }
  void set_totals(const nn::LossSums& sums) { totals_ = sums; }
  /// Why steps are not captured, in one line; empty where there is nothing to say.
  static constexpr std::string_view note() { return {}; }

 private:
  nn::LossSums totals_{};
};

}  // namespace skein::inline SKEIN_ABI::train
