// SPDX-License-Identifier: Apache-2.0
// Slowed<Policy>: a policy of which one rank computes slower than the others, as on a machine that somebody else uses too: what a
// slow worker does to each policy can be tried (examples/experiments/13_parameter_server.cpp).
#pragma once
#include <chrono>
#include <thread>
#include <utility>

#include "../concepts.hpp"

namespace skein::inline SKEIN_ABI::parallel {

/// The .rank of a SlowWorker that makes all slow in turn: rank r before its steps that are -r modulo .every.
inline constexpr int each_in_turn = -1;

/// Which rank sleeps, how long, before every how many of its steps. Sleeping in place of computing, ranks can outnumber the
/// cores.
struct SlowWorker {
  int rank = 0;
  double seconds = 0.01;
  int every = 1;
  double others = 0;  ///< what the others sleep before each step: the pace of all
};

namespace detail {
template <class Policy> inline constexpr bool asks_hooks = !Policy::brings_train_step;
}

/// The inner one with all that it declares: what is not named here is the inner one's own.
template <class Inner> class SlowedPolicyState : public Inner {
 public:
  SlowedPolicyState(Inner inner, const SlowWorker& slow) : Inner(std::move(inner)), slow_(slow) {}

  /// It sleeps once it has its weights: they are old when its gradients leave.
  bool before_step(std::int64_t step) {
    const bool changed = Inner::before_step(step);
    const bool turns = slow_.rank == each_in_turn;
    const bool slow =
        slow_.every > 0 && (turns || this->rank() == slow_.rank) && (step + (turns ? this->rank() : 0)) % slow_.every == 0;
    if (const double seconds = slow ? slow_.seconds : slow_.others; seconds > 0)
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    return changed;
  }

 private:
  SlowWorker slow_;
};

/// A slowed Compose answers for its parts, as the Compose does.
template <class Inner> inline constexpr bool forwards_to_parts<SlowedPolicyState<Inner>> = forwards_to_parts<Inner>;

/// Slowed{DataParallel{world}, {.rank = 1, .seconds = 0.02}}.
template <class Policy> class Slowed : public Policy {
  static_assert(detail::asks_hooks<Policy>,
                "Slowed{policy}: a pipeline makes steps of its own, which ask no hooks: give it .lengths in place of this");

 public:
  explicit Slowed(Policy policy, SlowWorker slow = {}) : Policy(std::move(policy)), slow_(slow) {}

  template <class R> auto bind(const R& replica) const {
    return SlowedPolicyState<decltype(Policy::bind(replica))>(Policy::bind(replica), slow_);
  }

 private:
  SlowWorker slow_;
};

}  // namespace skein::inline SKEIN_ABI::parallel
