// SPDX-License-Identifier: Apache-2.0
// Loss scaling in a step: the scale as it moves, and the stage that looks for gradients that are not finite. A step with one is
// skipped on all ranks alike. Of a model whose loss is not scaled there is nothing here.
#pragma once
#include <utility>

#include "../../ops/cpu/finite.hpp"
#include "../../optim/loss_scaler.hpp"
#include "worker_step.hpp"

namespace skein::inline SKEIN_ABI::train {

/// The scale, and what the last step means for it. A device is asked for that when the next step begins, or somebody asks.
template <class Model> class LossScaleState {
 public:
  optim::LossScaler& scaler() { return scaler_; }
  const optim::LossScaler& scaler() const { return scaler_; }
  void set(const optim::LossScaling& scaling) { scaler_ = scaler_.with(scaling); }

  /// After an update: does it count. On the host it is known, on a device it will be.
  void note(bool overflowed) {
    pending_ = scaler_.active();
    overflowed_ = overflowed;
  }
  /// Takes note of it: the scale follows. False: the last step did not count. A device is waited for.
  template <class Scalar, class Device> bool last_counts([[maybe_unused]] const StepDevice<Scalar, Device>& device) {
    if (!pending_) return true;
    pending_ = false;
    if constexpr (!on_host<Device>) overflowed_ = device.read_scale().skip != 0;
    return scaler_.update(std::exchange(overflowed_, false));
  }

 private:
  optim::LossScaler scaler_{optim::usual_loss_scaling<typename Model::Activation>()};
  bool overflowed_ = false, pending_ = false;
};

/// Is any gradient of the step not finite that an update takes: of frozen parameters there may be what a training before has
/// left. After an exchange over all ranks these see the same gradients, hence the same answer; without one, or over some of them,
/// they agree.
struct LookForOverflow {
  template <class Parts> static constexpr bool used = Parts::Model::scales_loss;
  static constexpr bool of_updates = true, waits = false;

  template <class Parts> static bool run(WorkerStep<Parts>& w) {
    using PolicyState = typename Parts::PolicyState;
    if (!w.step.look) return true;
    if constexpr (parallel::ServesUpdates<PolicyState>)
      throw ArgumentError(
          "step: a parameter server does not know the loss scale of 16-bit models: call "
          "set_loss_scaling(optim::LossScaling::none()) before");
    auto& memory = w.parts.update_memory;
    bool finite = true;
    w.each_trained(nullptr, [&](const auto& part) {
      finite = finite && ops::cpu::all_finite(part.gradients, part.gradient_count, part.begin, part.end);
    });
    memory.numbers[static_cast<std::size_t>(w.worker.index)] = finite ? 0 : 1;
    w.worker.barrier();
    if (w.worker.index == 0) {
      double bad[1] = {0};
      for (int i = 0; i < w.worker.count; ++i) bad[0] += memory.numbers[static_cast<std::size_t>(i)];  // others are a norm's
      if (asks_other_ranks(w.parts, w.step) || parallel::OwnsPart<PolicyState>) w.parts.policy_state.reduce(bad);
      memory.overflowed = bad[0] > 0;
    }
    w.worker.barrier();
    return !memory.overflowed;
  }
};

}  // namespace skein::inline SKEIN_ABI::train
