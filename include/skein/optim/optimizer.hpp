// SPDX-License-Identifier: Apache-2.0
// What an optimizer is: an aggregate of hyper-parameters that says how many state arrays it keeps, and one pass over flat
// memory. State lives in an arena that the library makes: array k has the layout of the parameter arena, zero at first.
#pragma once
#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "../core/named_values.hpp"
#include "../core/text.hpp"
#include "../device/device.hpp"
#include "../ops/optimizer.hpp"
#include "groups.hpp"

namespace skein::inline SKEIN_ABI::optim {

/// One pass over elements [begin, end) of the arena: what every pass reads and writes (ops::UpdateArguments), and what an
/// optimizer makes its own arguments of. The step's gradient is gradient_scale (and scale->factor, where there is a scale) times
/// the sum of `gradients`. Gaps between rows hold zero in all arrays, and must do so afterwards.
template <class Scalar_, class Device_ = Cpu> struct UpdateCall : ops::UpdateArguments<Scalar_> {
  using Device = Device_;
  constexpr UpdateCall() { this->gradient_count = 1; }
  Scalar_* const* state = nullptr;  ///< state_arrays() arrays
  std::int64_t step = 1;            ///< 1 in the first step of this range
  float lr = 0;                     ///< of this range: scheduled, and with the group's factor
  float weight_decay = 0;           ///< of this range
};

/// What an element's update may look at beside the element: the rate and the decay of its parameter group, and the step's number.
template <class Scalar> struct UpdateRates {
  Scalar lr = 0, weight_decay = 0;
  Scalar step = 1;  ///< 1 in the first step
};

namespace detail {
namespace refused {
template <class...> inline constexpr bool by_this_name = false;
/// A member that takes no memory and refuses every value: PyTorch's `lr` is that name here too, Keras's is learning_rate.
struct LearningRate {
  constexpr LearningRate() = default;
  template <class T> constexpr LearningRate(const T&) {
    static_assert(by_this_name<T>, "an optimizer has no option of this name: its learning rate is .lr, as in Sgd{.lr = 0.1f}");
  }
};
/// PyTorch's names of what Adam has.
struct Betas {
  constexpr Betas() = default;
  template <class... T>
  requires(sizeof...(T) > 0) constexpr Betas(const T&...) {
    static_assert(by_this_name<Betas, T...>, "Adam has no .betas: they are two numbers, Adam{.beta1 = 0.9, .beta2 = 0.999}");
  }
};
struct Eps {
  constexpr Eps() = default;
  template <class T> constexpr Eps(const T&) {
    static_assert(by_this_name<T>, "an optimizer has no option of this name: it is .epsilon, as in Adam{.epsilon = 1e-8}");
  }
};
}  // namespace refused
}  // namespace detail

/// O has a learning rate: `lr`.
template <class O> concept HasRate = requires(const O& o) {
  { o.lr } -> std::convertible_to<float>;
};
/// O evaluates the loss itself, several times a step: Lbfgs (optim/lbfgs/lbfgs.hpp). It is no Optimizer.
template <class O> concept TakesClosure = requires { requires O::takes_closure; };
/// O says how many arrays of the parameters' size it keeps: state_arrays().
template <class O> concept HasState = requires(const O& o) {
  { o.state_arrays() } -> std::convertible_to<int>;
};
namespace detail {
/// O's element() can be called with a value of this kind. The gradient is no lvalue, so that it is not taken for the value.
template <class O, class Value>
concept ElementOf = requires(const O& o, const UpdateRates<float>& at, Value&& value, float* state) {
  { o.element(at, 0.0f, static_cast<Value&&>(value), state) } -> std::same_as<void>;
};
/// An lvalue to which a copy or a const reference binds, and no other reference, auto&& neither.
struct BitField {
  int bits : 8;
};
template <class O> concept ElementOfBits = requires(const O& o, const UpdateRates<float>& at, BitField& of, float* state) {
  o.element(at, 0.0f, of.bits, state);
};
/// What O's element() writes does not reach the caller: it takes `S value` or `const S& value`. One of auto&& value is told from
/// these by what it takes of another type.
template <class O> concept WritesToACopy = ElementOf<O, float> &&(!ElementOf<O, double&> || ElementOfBits<O>);
}  // namespace detail
/// Says what becomes of one element, and writes it into the value; the library makes the pass.
template <class O> concept HasElement = detail::ElementOf<O, float&> && !detail::WritesToACopy<O>;
/// Makes the arguments of one of the passes of ops.
template <class O> concept HasArguments = requires(const O& o, const UpdateCall<float, Cpu>& call) {
  { o.arguments(call) } -> std::derived_from<ops::UpdateArguments<float>>;
};
/// Has a pass of its own.
template <class O> concept HasApply = requires(const O& o, const UpdateCall<float, Cpu>& call) { o.apply(call); };

/// An optimizer: copyable, has a rate, says how many state arrays it keeps, and updates: element by element, or by one pass of
/// its own. Optional members that the library honours: `float weight_decay`, `Groups groups`, `void check() const` (throws
/// ArgumentError for bad values), `void describe(NamedValues&) const` (hyper-parameters by name, which ranks compare).
template <class O> concept Optimizer = std::copyable<O> && HasRate<O> && HasState<O> &&
    (HasElement<O> ? std::is_trivially_copyable_v<O> : HasArguments<O> || HasApply<O>);

namespace detail {
template <class O> inline constexpr bool is_an_optimizer = false;
/// O says what it needs, as transforms do (transform/transform.hpp).
template <class O> concept NamesNeeds = requires { O::needs; };
}  // namespace detail

/// Refuses, with one sentence, a type that is no optimizer. (The sentences are here and not in a type: clang would add an error.)
template <class O> consteval void assert_optimizer() {
  if constexpr (!std::copyable<O>)
    static_assert(detail::is_an_optimizer<O>, "an optimizer is a value of hyper-parameters: it must be copyable");
  else if constexpr (TakesClosure<O>)
    static_assert(detail::is_an_optimizer<O>,
                  "L-BFGS evaluates the loss of all samples several times a step, which a trainer does not: a loop by hand calls "
                  "optim::BoundLbfgs{optim::Lbfgs{...}, model}.step(model, closure)");
  else if constexpr (!HasRate<O> && detail::NamesNeeds<O>)
    static_assert(detail::is_an_optimizer<O>,
                  "this is a transform of gradients, which stands before an optimizer: optim::chain(Lars{...}, Sgd{.lr = 0.1f})");
  else if constexpr (!HasRate<O>)
    static_assert(detail::is_an_optimizer<O>, "an optimizer has a learning rate that schedules scale: give it a member float lr");
  else if constexpr (!HasState<O>)
    static_assert(detail::is_an_optimizer<O>,
                  "an optimizer says how many arrays of state it keeps: give it int state_arrays() const");
  else if constexpr (!HasElement<O> && !HasArguments<O> && !HasApply<O>)
    static_assert(detail::is_an_optimizer<O>,
                  "an optimizer says what becomes of an element, or updates a range of the arena: give it void element(const "
                  "UpdateRates<S>& at, S gradient, S& value, S* state) const for any S, which writes into value, a reference "
                  "(S&), or void apply(const UpdateCall<Scalar, Device>&) const");
  else if constexpr (HasElement<O> && !std::is_trivially_copyable_v<O>)
    static_assert(detail::is_an_optimizer<O>,
                  "an optimizer with element() goes into kernels by value: it must be trivially copyable (parameter groups are "
                  "given to a chain: optim::chain(it), which has a member groups)");
}

/// It has a member float weight_decay.
template <class O> concept HasWeightDecay = requires(const O& o) {
  { o.weight_decay } -> std::convertible_to<float>;
};
/// It has a member Groups groups.
template <class O> concept HasGroups = requires(const O& o) {
  { o.groups } -> std::convertible_to<Groups>;
};
/// It looks at its hyper-parameters.
template <class O> concept HasCheck = requires(const O& o) { o.check(); };

/// The optimizer's weight decay; 0 where it has none.
template <Optimizer O> float weight_decay_of(const O& o) {
  if constexpr (HasWeightDecay<O>) return o.weight_decay;
  else return 0;
}
/// The optimizer's parameter groups; none where it has no member for them.
template <Optimizer O> Groups groups_of(const O& o) {
  if constexpr (HasGroups<O>) return o.groups;
  else return {};
}
/// The same optimizer for a part of the parameters: rules that match none of them are not refused.
template <Optimizer O> O for_a_part(O o) {
  if constexpr (HasGroups<O>)
    for (GroupRule& rule : o.groups.rules) rule.may_match_nothing = true;
  return o;
}
/// Throws ArgumentError for hyper-parameters that make no sense.
template <Optimizer O> void check(const O& o) {
  if constexpr (HasCheck<O>) o.check();
}

/// It says its hyper-parameters by name: void describe(NamedValues&) const.
template <class O> concept SaysItsValues = requires(const O& o, NamedValues& to) { o.describe(to); };
/// The hyper-parameters that ranks compare: those that the optimizer says, else its rate, its decay and its number of arrays.
template <Optimizer O> void describe(const O& o, NamedValues& to) {
  if constexpr (SaysItsValues<O>) o.describe(to);
  else to.of("the optimizer").add(".lr", o.lr).add(".weight_decay", weight_decay_of(o)).add("arrays of state", o.state_arrays());
}

/// What all passes of ops have in common, out of a call: auto arguments = arguments_of<ops::SgdArguments<Scalar>>(call).
template <class Arguments, class Scalar, class Device> Arguments arguments_of(const UpdateCall<Scalar, Device>& call) {
  Arguments arguments;
  static_cast<ops::UpdateArguments<Scalar>&>(arguments) = call;
  return arguments;
}

namespace detail {
/// The pass of an optimizer that has element(): a kernel's argument as well as a loop's.
template <class O, class Scalar> struct ElementArguments : ops::UpdateArguments<Scalar> {
  static constexpr int states = O::state_arrays(), arrays = states > 0 ? states : 1;
  O optimizer;
  UpdateRates<Scalar> rates{};
  Scalar* state_of[arrays] = {};

  constexpr Scalar* array(int k) const { return state_of[k]; }
  constexpr void element(Scalar gradient, Scalar& value, Scalar* state) const {
    optimizer.element(rates, gradient, value, state);
  }
  constexpr void rescale(Scalar lr_factor, Scalar decay_factor) {
    rates.lr *= lr_factor;
    rates.weight_decay *= decay_factor;
  }
};
template <class Scalar, class Device> UpdateRates<Scalar> rates_of(const UpdateCall<Scalar, Device>& call) {
  return {static_cast<Scalar>(call.lr), static_cast<Scalar>(call.weight_decay), static_cast<Scalar>(call.step)};
}
/// The arguments of O's pass, whichever way it makes them.
template <class O, class Scalar, class Device> auto pass_of(const O& o, const UpdateCall<Scalar, Device>& call) {
  if constexpr (HasArguments<O>) {
    return o.arguments(call);
  } else {
    ElementArguments<O, Scalar> arguments{call, o, rates_of(call), {}};
    for (int k = 0; k < O::state_arrays(); ++k) arguments.state_of[k] = call.state[k];
    return arguments;
  }
}
}  // namespace detail

/// One pass of an optimizer over [call.begin, call.end), with the rate and the decay of the call.
template <class O, class Scalar, class Device> void apply(const O& o, const UpdateCall<Scalar, Device>& call) {
  if constexpr (HasApply<O>) o.apply(call);
  else ops::update<Device>(detail::pass_of(o, call));
}

/// Does one launch serve all parameter groups of O, on a device where passes of ops do? Its pass is one of those then; an
/// optimizer with an apply() of its own that hands UpdateCall::ranges on to such a pass says so by `static constexpr bool
/// takes_ranges = true`, else it is called range by range.
template <class O> inline constexpr bool takes_ranges_of = [] {
  if constexpr (requires { O::takes_ranges; }) return O::takes_ranges;
  else return !HasApply<O>;
}();
template <class O, class Device> consteval bool takes_ranges() {
  return takes_ranges_of<O> && ops::OptimizerKernels<Device>::takes_ranges;
}

/// Calls visit(part) for what [call.begin, call.end) shares with each range that is not frozen, with the range's rate and decay.
template <class Scalar, class Device, class Visit>
void for_each_range(std::span<const ParameterGroupRange> ranges, const UpdateCall<Scalar, Device>& call, Visit&& visit) {
  for (const ParameterGroupRange& range : ranges) {
    if (range.frozen) continue;
    UpdateCall<Scalar, Device> part = call;
    part.begin = std::max(call.begin, range.begin);
    part.end = std::min(call.end, range.end);
    if (part.begin >= part.end) continue;
    part.lr *= range.lr_factor;
    part.weight_decay *= range.decay_factor;
    part.step -= range.since;
    visit(part);
  }
}

/// Updates what [call.begin, call.end) shares with each range that is not frozen. `call.lr` is the scheduled rate,
/// `call.weight_decay` the optimizer's: the ranges' factors are applied here. Workers call it on disjoint parts.
template <Optimizer O, class Scalar, class Device>
void update(const O& optimizer, std::span<const ParameterGroupRange> ranges, const UpdateCall<Scalar, Device>& call) {
  if (takes_ranges<O, Device>() && call.ranges) return apply(optimizer, call);
  for_each_range(ranges, call, [&](const UpdateCall<Scalar, Device>& part) { apply(optimizer, part); });
}

namespace detail {
/// Throws where a hyper-parameter is not as it must be. "Adam{.lr = -1}: the rate must not be negative".
inline void demand(bool holds, const char* optimizer, const char* member, double value, const char* rule) {
  if (holds) return;
  const float narrow = static_cast<float>(value);  // as the program has written it
  const std::string shown = static_cast<double>(narrow) == value ? text("{}", narrow) : text("{}", value);
  throw ArgumentError(text("{}{.{} = {}}: {}", optimizer, member, shown, std::isnan(value) ? "that is no number" : rule));
}
/// An epsilon in the parameters' type: positive there too, or it would not keep 0 / 0 away.
template <class Scalar> Scalar epsilon_of(double epsilon) {
  return std::max(static_cast<Scalar>(epsilon), std::numeric_limits<Scalar>::min());
}
inline void demand_finite(const char* optimizer, const char* member, double value) {
  demand(std::isfinite(value), optimizer, member, value, "it must be finite: weights would become infinite, or not move");
  demand(std::abs(value) <= std::numeric_limits<float>::max(), optimizer, member, value,
         "single precision has no room for it, it must be below 3.4e38: weights would become infinite, or not move");
}
inline void demand_rate(const char* optimizer, double lr) {
  demand(lr >= 0, optimizer, "lr", lr, "the rate must not be negative");
  demand(std::isfinite(lr), optimizer, "lr", lr, "the rate must be finite");
}
inline void demand_decay(const char* optimizer, double weight_decay) {
  demand(weight_decay >= 0, optimizer, "weight_decay", weight_decay, "weight decay must not be negative");
  demand_finite(optimizer, "weight_decay", weight_decay);
}
inline void demand_epsilon(const char* optimizer, double epsilon) {
  demand(epsilon > 0, optimizer, "epsilon", epsilon, "epsilon must be positive");
  demand_finite(optimizer, "epsilon", epsilon);
}
/// What a running mean keeps of itself in each step.
inline void demand_share(const char* optimizer, const char* member, double share) {
  demand(share >= 0 && share < 1, optimizer, member, share, "a running mean keeps a share from 0 up to, not including, 1");
}
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI::optim
