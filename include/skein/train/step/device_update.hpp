// SPDX-License-Identifier: Apache-2.0
// The update on a device of its own, where the sums of the batch are known to the device alone: it makes the factor of the
// gradients, with clipping and the loss scale in it, and the pass reads that. In a step that is replayed this is all that runs on
// the host.
#pragma once
#include <cmath>
#include <limits>

#include "../../device/memory.hpp"
#include "device_transform.hpp"
#include "worker_step.hpp"

namespace skein::inline SKEIN_ABI::train {

/// The stage of the update on a device of its own.
struct DeviceUpdate {
  template <class Parts> static constexpr bool used = true;
  static constexpr bool of_updates = true, waits = true;

  template <class Parts> static bool run(WorkerStep<Parts>& w) {
    update(w.parts, w.step);
    return true;
  }
  template <class Parts> static void update(Parts& parts, const StepState<Parts>& step) {
    using PolicyState = typename Parts::PolicyState;
    using Scalar = typename Parts::Scalar;
    auto& device = parts.device;
    auto& memory = parts.executor->step_memory();
    [[maybe_unused]] const auto arguments = device.arguments(memory);
    optim::StepCall<Scalar> call;
    call.step = step.number;
    call.lr = step.lr;
    call.gradients = parts.update_memory.gradients.data();
    const plan::Range own = parts.placement.own();
    ops::StepScaleCall<Scalar> scale{.expected_weight = parts.policy_state.gradient_factor() * step.expected_weight};
    if constexpr (Parts::Model::scales_loss) scale.values = memory.values();
    if (step.clip > 0 || step.look) {
      parts.optimizer.sum_of_squares(call, own.begin, own.end, device.squares());  // not finite where a gradient is not
      if constexpr (parallel::OwnsPart<PolicyState>)
        parts.policy_state.sum_over_owners_there(DeviceSpan<double, typename Parts::Device>(device.squares(), 1));
      if (asks_other_ranks(parts, step)) skip_with_others(parts);
      scale.squares = device.squares();
      scale.may_skip = step.look;
      scale.clip_norm = static_cast<double>(static_cast<float>(step.clip));
    }
    device.finish_sums(step.exchange && !PolicyState::local_sums ? nullptr : memory.sums(), step.exchange, parts.tail(), scale);
    if (step.look) parts.buffers.give_back_if_skipped(parts.model->buffers(), device.scale(), parts.tail());
    call.scale = device.scale();
    if constexpr (optim::has_stages<typename Parts::Optimizer>) {
      DeviceGradient<Parts> gradient(parts, call, step.look);
      parts.optimizer.optimizer().transform_gradient(gradient);
    }
    parts.optimizer.update(parts.model->weights().unguarded().data, call, own.begin, own.end);
  }

 private:
  /// Ranks whose gradients are their own: where one of any rank's is not finite, the squares of all are not, so that all skip the
  /// step. The host waits for the device, and for the other ranks.
  template <class Parts> static void skip_with_others(Parts& parts) {
    using There = Memory<typename Parts::Device>;
    double squares = 0, bad[1] = {0};
    There::to_host(&squares, parts.device.squares(), sizeof squares, parts.model->where());
    if (!std::isfinite(squares)) bad[0] = 1;
    parts.policy_state.reduce(bad);
    squares = std::numeric_limits<double>::quiet_NaN();
    if (bad[0] > 0) There::from_host(parts.device.squares(), &squares, sizeof squares, parts.model->where());
  }
};

}  // namespace skein::inline SKEIN_ABI::train
