// SPDX-License-Identifier: Apache-2.0
// chain(ClipNorm{1.0f}, Lars{...}, Sgd{...}): gradient transforms and the optimizer behind them are an optimizer, in the manner
// of optax's chains. Elementwise transforms are fused into the optimizer's one pass; a transform that needs more is a stage of
// its own before that pass, at which the summed gradient is in memory. A ClipNorm at the head is no stage: its norm is taken of
// the workers' gradients as they are.
#pragma once
#include <array>
#include <tuple>
#include <utility>

#include "../clip.hpp"
#include "fused.hpp"

namespace skein::inline SKEIN_ABI::optim {

namespace detail {
template <class...> inline constexpr bool is_a_chain = false;
/// Can element transforms be fused into O's pass?
template <class O> inline constexpr bool can_fuse = !HasApply<O>;
}  // namespace detail

/// Transforms of the gradient, applied in their order, and the optimizer that takes the result: an optimizer itself.
template <class O, class... Ts> class Chain {
  static constexpr int count = static_cast<int>(sizeof...(Ts));
  static constexpr std::array<Needs, sizeof...(Ts) + 1> kinds{Ts::needs..., Needs::element};
  static constexpr std::array<int, sizeof...(Ts) + 1> arrays{detail::state_arrays_of<Ts>()..., 0};
  static constexpr int head = (count > 0 && std::same_as<std::tuple_element_t<0, std::tuple<Ts..., O>>, ClipNorm>) ? 1 : 0;

  /// Stages before transform i, and the first transform that comes after all of those.
  static constexpr int stages_before(int i) {
    int n = 0;
    for (int k = head; k < i; ++k) n += kinds[static_cast<std::size_t>(k)] != Needs::element;
    return n;
  }
  static constexpr int first_after_stages(int i) {
    int first = head;
    for (int k = head; k < i; ++k)
      if (kinds[static_cast<std::size_t>(k)] != Needs::element) first = k + 1;
    return first;
  }
  static constexpr int state_before(int i) {
    int n = 0;
    for (int k = 0; k < i; ++k) n += arrays[static_cast<std::size_t>(k)];
    return n;
  }
  static constexpr int fused_from = first_after_stages(count);
  static constexpr std::size_t position_of_curvature() {
    std::size_t i = 0;
    while (i < sizeof...(Ts) && kinds[i] != Needs::curvature) ++i;
    return i;
  }

 public:
  static constexpr int stages = stages_before(count);
  static constexpr int tensors = ((Ts::needs == Needs::tensor) + ... + 0), norms = ((Ts::needs == Needs::global) + ... + 0),
                       host_tensors = (detail::of_host_tensors<Ts> + ... + 0),
                       curvatures = ((Ts::needs == Needs::curvature) + ... + 0);
  static constexpr bool takes_ranges = fused_from < count || optim::takes_ranges_of<O>;

  float lr = 0;  ///< the optimizer's, as its weight decay and its groups: these are the chain's from here on
  float weight_decay = 0;
  Groups groups{};

  Chain(const O& optimizer, const Ts&... transforms)
      : lr(optimizer.lr), weight_decay(weight_decay_of(optimizer)), groups(groups_of(optimizer)), optimizer_(optimizer),
        transforms_(transforms...) {}

  /// Those of the transforms, in their order, then the optimizer's.
  int state_arrays() const { return state_before(count) + optimizer_.state_arrays(); }
  /// Throws ArgumentError for values out of range, of any part.
  void check() const {
    std::apply([](const auto&... t) { (check_one(t), ...); }, transforms_);
    optim::check(optimizer_);
    detail::demand_rate("chain", lr);
    detail::demand_decay("chain", weight_decay);
  }
  /// The values of all parts, and the rate and decay that are the chain's.
  void describe(NamedValues& to) const {
    std::apply([&](const auto&... t) { (describe_one(t, to), ...); }, transforms_);
    optim::describe(optimizer_, to);
    to.of("the chain").add(".lr", lr).add(".weight_decay", weight_decay);
  }
  /// The largest norm that the ClipNorm at the head leaves.
  double clip_norm() const requires(head == 1) { return static_cast<double>(std::get<0>(transforms_).max_norm); }
  const O& optimizer() const { return optimizer_; }
  template <int I> const auto& transform() const { return std::get<I>(transforms_); }
  /// The one that needs curvature.
  const auto& curvature() const requires(curvatures == 1) { return std::get<position_of_curvature()>(transforms_); }

  /// The last pass: the elementwise transforms behind the last stage, and the optimizer.
  template <class Scalar, class Device> void apply(const UpdateCall<Scalar, Device>& call) const {
    UpdateCall<Scalar, Device> own = call;
    own.state += state_before(count);
    if constexpr (fused_from == count) {
      optim::apply(optimizer_, own);
    } else {
      auto pass = detail::pass_of(optimizer_, own);
      auto transforms = fused<fused_from, count>();
      detail::FusedArguments<decltype(pass), decltype(transforms)> arguments{pass, transforms, detail::rates_of(call), {}};
      for (int k = 0; k < decltype(transforms)::arrays; ++k) arguments.state_of[k] = call.state[state_before(fused_from) + k];
      ops::update<Device>(arguments);
    }
  }

  /// Every worker: the stages before the last pass. `step` is the update as it stands (train/step/transform.hpp): its whole(),
  /// scale_by_norm(transform), make_whole(write) and each_tensor(visit).
  template <class Step> void transform_gradient(Step& step) const {
    [&]<int... I>(std::integer_sequence<int, I...>) { (apply_transform<I>(step), ...); }
    (std::make_integer_sequence<int, count>{});
  }

 private:
  template <class T> static void check_one(const T& t) {
    if constexpr (requires { t.check(); }) t.check();
  }
  template <class T> static void describe_one(const T& t, NamedValues& to) {
    if constexpr (SaysItsValues<T>) t.describe(to);
  }
  template <int I> using TransformAt = std::tuple_element_t<static_cast<std::size_t>(I), std::tuple<Ts...>>;

  /// The elementwise transforms of [From, To), as one.
  template <int From, int To> auto fused() const {
    if constexpr (From == To) {
      return detail::NoTransform{};
    } else {
      static_assert(kinds[static_cast<std::size_t>(From)] == Needs::element);
      auto rest = fused<From + 1, To>();
      return detail::Fused<TransformAt<From>, decltype(rest)>{std::get<static_cast<std::size_t>(From)>(transforms_), rest};
    }
  }
  template <int I, class Step> void apply_transform(Step& step) const {
    constexpr Needs kind = kinds[static_cast<std::size_t>(I)];
    if constexpr (I >= head && kind != Needs::element) {
      const auto& transform = std::get<static_cast<std::size_t>(I)>(transforms_);
      constexpr int from = first_after_stages(I);
      if (from < I || (kind != Needs::global && !step.whole())) {
        const auto before = fused<from, I>();
        step.make_whole(
            [&](const auto& call, auto* into) { detail::write_gradient(call, before, call.state + state_before(from), into); });
      }
      if constexpr (kind == Needs::global) step.scale_by_norm(transform);
      else if constexpr (kind == Needs::curvature) step.precondition(transform);
      else
        step.each_tensor([&](auto& parameter) {
          parameter.state_arrays += state_before(I);
          transform.tensor(parameter);
        });
    }
  }

  O optimizer_;
  std::tuple<Ts...> transforms_;
};

namespace detail {
template <class O, class... Ts> consteval bool assert_chain() {
  if constexpr ((Optimizer<Ts> || ...))
    static_assert(is_a_chain<O, Ts...>, "a chain ends with its optimizer and has no other: transforms come before it");
  else if constexpr (!Optimizer<O> && SaysNeeds<O>)
    static_assert(is_a_chain<O, Ts...>,
                  "a chain ends with its optimizer, as in chain(ClipNorm{1.0f}, Sgd{}): its last is a transform");
  else if constexpr (!Optimizer<O>) assert_optimizer<O>();
  else if constexpr (!(Transform<Ts> && ...)) (..., assert_transform<Ts>());
  else if constexpr (((Ts::needs == Needs::curvature) + ... + 0) > 1)
    static_assert(is_a_chain<O, Ts...>,
                  "a chain has one transform that needs curvature (Kfac): a second one would undo the first");
  else if constexpr (has_stages<O> || HasClipNorm<O>)
    static_assert(
        is_a_chain<O, Ts...>,
        "a chain within a chain would lose its transforms of tensors and norms: write all transforms and the optimizer in "
        "one chain(...)");
  else if constexpr (!can_fuse<O> && ((Ts::needs == Needs::element) || ...))
    static_assert(
        is_a_chain<O, Ts...>,
        "elementwise transforms are fused into the optimizer's pass, and this one has a pass of its own, apply(): give it "
        "element() instead, or leave them out");
  else return true;
  return false;
}
/// What follows a sentence, so that it is the only one.
struct NoChain {
  float lr = 0;
  static constexpr int state_arrays() { return 0; }
  template <class Call> void apply(const Call&) const {}
};
template <class Parts, std::size_t... I> auto make_chain(const Parts& parts, std::index_sequence<I...>) {
  using O = std::tuple_element_t<sizeof...(I), Parts>;
  if constexpr (assert_chain<O, std::tuple_element_t<I, Parts>...>())
    return Chain<O, std::tuple_element_t<I, Parts>...>(std::get<sizeof...(I)>(parts), std::get<I>(parts)...);
  else return NoChain{};
}
}  // namespace detail

/// Transforms in the order in which they change the gradient, and the optimizer that takes it last.
template <class... Parts> auto chain(const Parts&... parts) {
  static_assert(sizeof...(Parts) > 0, "a chain ends with its optimizer: chain(Sgd{}) is the shortest");
  return detail::make_chain(std::tuple<Parts...>(parts...), std::make_index_sequence<sizeof...(Parts) - 1>{});
}

}  // namespace skein::inline SKEIN_ABI::optim
