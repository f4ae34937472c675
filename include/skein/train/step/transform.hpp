// SPDX-License-Identifier: Apache-2.0
// The stage at which the gradient is changed before the optimizer's pass reads it: clipping by its norm, and the stages of a
// chain (optim/transform/chain.hpp). Where there is neither, nothing happens here, and without an exchange the summed gradient
// never is in memory: the optimizer's pass adds up the workers' arrays. (One that ranks exchange is summed before it leaves.)
#pragma once
#include "../../optim/clip.hpp"
#include "reduced_gradient.hpp"
#include "worker_step.hpp"

namespace skein::inline SKEIN_ABI::train {

/// The stage that changes the gradient before the update.
struct Transform {
  template <class Parts> static constexpr bool used = true;
  static constexpr bool of_updates = true, waits = false;

  template <class Parts> static bool run(WorkerStep<Parts>& w) {
    constexpr bool stages = optim::has_stages<typename Parts::Optimizer>;
    if (!stages && w.step.clip <= 0) return true;
    ReducedGradient gradient(w);
    if (w.step.clip > 0) {
      const double norm = gradient.norm();
      if (w.step.finite && !w.finite_on_all(norm)) [[unlikely]]
        return w.leave_out();
      gradient.multiply(optim::ClipNorm{static_cast<float>(w.step.clip)}(norm));
    }
    if constexpr (stages) w.parts.optimizer.optimizer().transform_gradient(gradient);
    return true;
  }
};

}  // namespace skein::inline SKEIN_ABI::train
