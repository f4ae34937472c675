// SPDX-License-Identifier: Apache-2.0
// Any policy, as it is, with times for what its ranks compute: around a policy over SimComm, the clock goes on by the forward
// pass before a step, by the layers' shares of the backward pass as their gradients become ready, and by the optimizer after it.
// What the policy sends, when, and what it waits for is its own code.
#pragma once
#include <string>
#include <utility>

#include "../../comm/capability.hpp"
#include "../../core/error.hpp"
#include "../../plan/step_cost.hpp"
#include "../concepts.hpp"

namespace skein::inline SKEIN_ABI::parallel {

using plan::ComputeTimes, plan::compute_times;

/// The inner policy's state, whose hooks let the clock go on.
template <class World, class Inner> class SimulatedPolicyState : public Inner {
 public:
  SimulatedPolicyState(Inner&& inner, World& world, const ComputeTimes& times, std::span<const plan::LayerNode> layers)
      : Inner(std::move(inner)), world_(&world), times_(times), layers_(layers) {}

  bool before_step(std::int64_t step) {
    const bool changed = Inner::before_step(step);
    world_->compute(times_.forward);
    done_ = 0;
    return changed;
  }
  void gradient_ready(long begin, long end) {
    if (begin < end) backward_to(plan::backward_share(layers_, begin));
    Inner::gradient_ready(begin, end);
  }
  void finish_gradients() {
    backward_to(1);
    Inner::finish_gradients();
  }
  bool after_step(const StepDone& done) {
    backward_to(1);
    if constexpr (!ServesUpdates<Inner>) world_->compute(times_.update);
    return Inner::after_step(done);
  }
  /// On a server an update takes its shard's share of the time.
  void serve(const UpdateCallback& update) requires ServesUpdates<Inner> {
    struct Context {
      SimulatedPolicyState* self;
      const UpdateCallback* update;
    } context{this, &update};
    Inner::serve({&context,
                  [](void* object, const ShardUpdate& u) {
                    const Context& c = *static_cast<Context*>(object);
                    const double share =
                        static_cast<double>(u.range.end - u.range.begin) / static_cast<double>(c.self->replica().stored);
                    c.self->world_->compute(share * c.self->times_.update);
                    (*c.update)(u);
                  },
                  update.arrays,
                  [](void* object, int k) {
                    const UpdateCallback& u = *static_cast<Context*>(object)->update;
                    return u.state(u.object, k);
                  },
                  [](void* object) { return static_cast<Context*>(object)->update->signal(); }});
  }
  /// Simulated seconds that this rank has waited.
  double exposed_seconds() const {
    if constexpr (comm::can<World, comm::Capability::clocks>) return world_->waited();
    else return Inner::exposed_seconds();
  }

 private:
  void backward_to(double share) {
    if (share <= done_) return;
    world_->compute((share - done_) * times_.backward);
    done_ = share;
  }

  World* world_;
  ComputeTimes times_;
  std::span<const plan::LayerNode> layers_;
  double done_ = 0;  // of the backward pass
};

/// Its hooks are there for the clock: what is declared is the inner one's.
template <class World, class Inner> inline constexpr bool forwards_to_parts<SimulatedPolicyState<World, Inner>> = true;

namespace detail {
template <class World> inline constexpr bool has_a_clock = comm::can<World, comm::Capability::computes>;
template <class Policy> inline constexpr bool makes_no_steps = !Policy::brings_train_step;
}  // namespace detail

/// The policy and the times: Simulated{DataParallel{world}, world, compute_times(2e-3)}, for a Trainer on a SimComm. World:
/// SimComm; or what has its compute(seconds), as Delayed, where a rank that computes sleeps. Times are of an optimizer step,
/// however many samples and calls it has.
template <class World, class Policy> class Simulated : public Policy {
  static_assert(
      detail::has_a_clock<World>,
      "Simulated{policy, world, times}: the world has no compute(seconds): take a SimComm, or a Delayed around the communicator");
  static_assert(
      detail::makes_no_steps<Policy>,
      "Simulated{policy, world, times}: a pipeline makes steps of its own, which ask no hooks: give it .lengths in place "
      "of this");

 public:
  Simulated(Policy policy, World& world, const ComputeTimes& times) : Policy(std::move(policy)), world_(&world), times_(times) {
    for (const double s : {times.forward, times.backward, times.update})
      if (!(s >= 0)) throw ArgumentError(text("Simulated: times to compute are 0 or more; one is {}", s));
  }
  template <class R> auto bind(const R& replica) const {
    using Inner = decltype(Policy::bind(replica));
    return SimulatedPolicyState<World, Inner>(Policy::bind(replica), *world_, times_, replica.layers);
  }

 private:
  World* world_;
  ComputeTimes times_;
};
template <class World, class Policy> Simulated(Policy, World&, const ComputeTimes&) -> Simulated<World, Policy>;

}  // namespace skein::inline SKEIN_ABI::parallel
