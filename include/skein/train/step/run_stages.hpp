// SPDX-License-Identifier: Apache-2.0
// The interpreter of a training step: a list of stages, which every worker of the region goes through in order. A stage is a
// type:
//   template <class Parts> static constexpr bool used   does a training of these parts have it
//   static constexpr bool of_updates                    only in a call that updates (not in the first ones of an accumulation)
//   static constexpr bool waits                         for all workers to have ended the stage before
//   static bool run(WorkerStep&)                        false: the step ends here, for all workers
#pragma once
#include "worker_step.hpp"

namespace skein::inline SKEIN_ABI::train {

/// Stages in the order in which each worker runs them.
template <class... Stages> struct StageList {
  template <class Parts> static void run(const Worker& worker, Parts& parts, StepState<Parts>& step) {
    WorkerStep<Parts> w(worker, parts, step);
    run(w);
  }
  template <class Parts> static void run(WorkerStep<Parts>& w) { (void)(run_one<Stages>(w) && ...); }

 private:
  template <class Stage, class Parts> static bool run_one(WorkerStep<Parts>& w) {
    if constexpr (!Stage::template used<Parts>) return true;
    else {
      if (Stage::of_updates && !w.step.update) return true;
      if constexpr (Stage::waits) w.worker.barrier();
      return Stage::run(w);
    }
  }
};

}  // namespace skein::inline SKEIN_ABI::train
