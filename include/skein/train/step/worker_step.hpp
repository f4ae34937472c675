// SPDX-License-Identifier: Apache-2.0
// WorkerStep: a step as one worker sees it, from stage to stage: its part of the arena, and the gradient as it stands (how many
// arrays have to be summed, and by what they are multiplied).
#pragma once
#include <algorithm>
#include <cmath>

#include "../../core/workers.hpp"
#include "step_parts.hpp"

namespace skein::inline SKEIN_ABI::train {

/// One worker's view of the step that is going on.
template <class Parts> struct WorkerStep {
  using Scalar = typename Parts::Scalar;

  WorkerStep(const Worker& w, Parts& p, StepState<Parts>& s) : worker(w), parts(p), step(s) {}

  /// After the exchange: the gradient is the sum of the workers' arrays, times expected_weight / weight.
  void begin_update(double scale) {
    call.step = step.number;
    call.lr = step.lr;
    call.gradient_scale = scale;
    call.gradients = parts.update_memory.gradients.data();
    one_array = step.exchange;
    plan::Range own{0, Parts::stored};
    if constexpr (parallel::OwnsPart<typename Parts::PolicyState>) own = parts.placement.own();
    const auto slice = worker.slice(own.end - own.begin, 16);
    begin = own.begin + slice.first;
    end = own.begin + slice.second;
  }
  /// visit(begin, end) for this worker's part, with the number of arrays to be summed in `call`.
  template <class Visit> void each(const Visit& visit) {
    for (const auto& s : parts.update_memory.segments) {
      const long lo = std::max(begin, s.range.begin), hi = std::min(end, s.range.end);
      if (lo >= hi) continue;
      call.gradient_count = s.summed && !one_array ? worker.count : 1;
      visit(lo, hi);
    }
  }

  /// visit(call) for each range of that part that is not frozen, with the range's rate and decay.
  template <class Visit> void each_trained(Scalar* parameters, const Visit& visit) {
    const auto& optimizer = parts.optimizer;
    each([&](long from, long to) {
      optim::for_each_range(optimizer.ranges(), optimizer.complete(parameters, call, from, to), visit);
    });
  }

  /// Is this number of the step, which all workers give, a finite one: on all ranks, where those agree about it.
  bool finite_on_all(double x) {
    if constexpr (Parts::PolicyState::local_sums)
      if (step.agrees) {
        if (worker.index == 0) {
          double others[1] = {std::isfinite(x) ? 0.0 : 1.0};
          parts.policy_state.reduce(others);
          parts.update_memory.finite = others[0] == 0;
        }
        worker.barrier();
        return parts.update_memory.finite;
      }
    return std::isfinite(x);
  }
  /// The step ends here, for all workers: nothing is updated.
  bool leave_out() {
    if (worker.index == 0) step.left_out = true;
    return false;
  }

  const Worker& worker;
  Parts& parts;
  StepState<Parts>& step;
  optim::StepCall<Scalar> call{};
  long begin = 0, end = 0;
  bool one_array = false;  ///< the gradient is worker 0's array alone
};

}  // namespace skein::inline SKEIN_ABI::train
