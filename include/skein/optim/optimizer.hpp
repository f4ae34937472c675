// SPDX-License-Identifier: Apache-2.0
// What an optimizer is: an aggregate of hyper-parameters that says how many state arrays it keeps, and one pass over flat
// memory. State lives in an arena that the library makes: array k has the layout of the parameter arena, zero at first.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstdint>
#include <span>

#include "../device/device.hpp"
#include "../ops/optimizer.hpp"
#include "groups.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// One pass over elements [begin, end) of the arena. Gaps between rows hold zero in all arrays, and must do so afterwards.
template <class Scalar_, class Device_> struct UpdateCall {
  using Scalar = Scalar_;
  using Device = Device_;
  Scalar* parameters = nullptr;
  const Scalar* const* gradients = nullptr;  ///< `gradient_count` arrays (one a worker), to be summed
  int gradient_count = 1;
  Scalar gradient_scale = 1;                  ///< factor of that sum: the divisor and the clipping
  const ops::StepScale* scale = nullptr;      ///< one more factor, in the device's memory; null: none
  const ops::RangeFactors* ranges = nullptr;  ///< in the device's memory, for optimizers that say takes_ranges; null: one range
  int range_count = 0;
  Scalar* const* state = nullptr;  ///< state_arrays() arrays
  long begin = 0, end = 0;
  std::int64_t step = 1;   ///< 1 in the first step
  float lr = 0;            ///< of this range: scheduled, and with the group's factor
  float weight_decay = 0;  ///< of this range
};

template <class O> concept HasRate = requires(const O& o) {
  { o.lr } -> std::convertible_to<float>;
};
template <class O> concept HasState = requires(const O& o) {
  { o.state_arrays() } -> std::convertible_to<int>;
};
template <class O> concept HasApply = requires(const O& o, const UpdateCall<float, Cpu>& call) { o.apply(call); };

/// An optimizer: copyable, has a rate, says how many state arrays it keeps, and applies one pass. Optional members that the
/// library honours: `float weight_decay`, `Groups groups`, `void check() const` (throws ArgumentError for bad values).
template <class O> concept Optimizer = std::copyable<O> && HasRate<O> && HasState<O> && HasApply<O>;

namespace detail {
template <class O> inline constexpr bool is_an_optimizer = false;
}

/// Refuses, with one sentence, a type that is no optimizer. (The sentences are here and not in a type: clang would add an error.)
template <class O> consteval void assert_optimizer() {
  if constexpr (!std::copyable<O>)
    static_assert(detail::is_an_optimizer<O>, "an optimizer is a value of hyper-parameters: it must be copyable");
  else if constexpr (!HasRate<O>)
    static_assert(detail::is_an_optimizer<O>, "an optimizer has a learning rate that schedules scale: give it a member float lr");
  else if constexpr (!HasState<O>)
    static_assert(detail::is_an_optimizer<O>,
                  "an optimizer says how many arrays of state it keeps: give it int state_arrays() const");
  else if constexpr (!HasApply<O>)
    static_assert(detail::is_an_optimizer<O>,
                  "an optimizer updates a range of the arena: give it void apply(const UpdateCall<Scalar, Device>&) const");
}

/// The optimizer's weight decay; 0 where it has none.
template <Optimizer O> float weight_decay_of(const O& o) {
  if constexpr (requires {
                  { o.weight_decay } -> std::convertible_to<float>;
                })
    return o.weight_decay;
  else return 0;
}
/// The optimizer's parameter groups; none where it has no member for them.
template <Optimizer O> Groups groups_of(const O& o) {
  if constexpr (requires {
                  { o.groups } -> std::convertible_to<Groups>;
                })
    return o.groups;
  else return {};
}
/// Throws ArgumentError for hyper-parameters that make no sense.
template <Optimizer O> void check(const O& o) {
  if constexpr (requires { o.check(); }) o.check();
}

/// Does O hand UpdateCall::ranges on to a pass of ops, so that one launch on a device serves all its parameter groups? It says so
/// by `static constexpr bool takes_ranges = true`; without it (an optimizer with kernels of its own) apply() is called range by
/// range.
template <class O, class Device> consteval bool takes_ranges() {
  if constexpr (requires { O::takes_ranges; }) return O::takes_ranges && ops::OptimizerKernels<Device>::takes_ranges;
  else return false;
}

/// Updates what [call.begin, call.end) shares with each range that is not frozen. `call.lr` is the scheduled rate,
/// `call.weight_decay` the optimizer's: the ranges' factors are applied here. Workers call it on disjoint parts.
template <Optimizer O, class Scalar, class Device>
void update(const O& optimizer, std::span<const ParameterGroupRange> ranges, const UpdateCall<Scalar, Device>& call) {
  if (takes_ranges<O, Device>() && call.ranges) return optimizer.apply(call);
  for (const ParameterGroupRange& range : ranges) {
    if (range.frozen) continue;
    UpdateCall<Scalar, Device> part = call;
    part.begin = std::max(call.begin, range.begin);
    part.end = std::min(call.end, range.end);
    if (part.begin >= part.end) continue;
    part.lr *= range.lr_factor;
    part.weight_decay *= range.decay_factor;
    optimizer.apply(part);
  }
}

/// What all passes of ops have in common, out of a call: auto pass = pass_of<ops::SgdArguments<Scalar>>(call).
template <class Arguments, class Scalar, class Device> Arguments arguments_of(const UpdateCall<Scalar, Device>& call) {
  Arguments arguments;
  arguments.parameters = call.parameters;
  arguments.gradients = call.gradients;
  arguments.gradient_count = call.gradient_count;
  arguments.gradient_scale = call.gradient_scale;
  arguments.scale = call.scale;
  arguments.ranges = call.ranges;
  arguments.range_count = call.range_count;
  arguments.begin = call.begin;
  arguments.end = call.end;
  return arguments;
}

namespace detail {
/// Throws where a hyper-parameter is not as it must be. "Adam{.lr = -1}: the rate must not be negative".
inline void demand(bool holds, const char* optimizer, const char* member, double value, const char* rule) {
  if (!holds) throw ArgumentError(std::string(optimizer) + "{." + member + " = " + std::to_string(value) + "}: " + rule);
}
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::optim
