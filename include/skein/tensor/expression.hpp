// SPDX-License-Identifier: Apache-2.0
// The tree that a user holds. Leaves are views of named tensors, tensors that came as rvalues (owned, so that
// `auto e = f(x) + 1` never dangles) and constants; inner nodes apply a function object. bind() makes of it the trivially
// copyable tree of bound.hpp. Devices, scalar types and ranks are checked here, with one sentence each.
#pragma once
#include <limits>
#include <type_traits>
#include <utility>

#include "../core/shape.hpp"
#include "view.hpp"

namespace skein::inline SKEIN_ABI {

namespace detail {

struct AnyDevice {};     // of a constant
struct MixedDevices {};  // refused already

template <class A, class B> struct JoinDevice { using type = MixedDevices; };
template <class A> struct JoinDevice<A, A> { using type = A; };
template <class A> struct JoinDevice<A, AnyDevice> { using type = A; };
template <class A> struct JoinDevice<AnyDevice, A> { using type = A; };
template <> struct JoinDevice<AnyDevice, AnyDevice> { using type = AnyDevice; };
template <class... D> struct CommonDevice { using type = AnyDevice; };
template <class D, class... Rest> struct CommonDevice<D, Rest...> {
  using type = typename JoinDevice<D, typename CommonDevice<Rest...>::type>::type;
};

template <class A, class... Rest> constexpr auto common_shape(const A& a, const Rest&... rest) {
  if constexpr (sizeof...(Rest) == 0) return a.shape();
  else return broadcast(a.shape(), common_shape(rest...));
}

template <class Device, class A, class... Rest> constexpr Device common_ordinal(const A& a, const Rest&... rest) {
  if constexpr (std::is_same_v<typename A::Device, Device>) {
    if constexpr (sizeof...(Rest) > 0 && !std::is_same_v<Device, Cpu>) {
      if constexpr (((std::is_same_v<typename Rest::Device, Device>) || ...)) {
        const Device other = common_ordinal<Device>(rest...);
        if (!(a.device() == other))
          throw ArgumentError(text("elementwise operation: tensors on {} {} and {} meet: move one of them with .to()",
                                   Device::name, a.device().ordinal, other.ordinal));
      }
    }
    return a.device();
  } else if constexpr (sizeof...(Rest) > 0) {
    return common_ordinal<Device>(rest...);
  } else {
    return Device{};
  }
}

/// One value, broadcast everywhere.
template <class S> struct Constant {
  using Scalar = S;
  using Device = AnyDevice;
  using skein_expression = void;
  static constexpr int rank = 0;
  static constexpr bool sound = true;
  S value;
  constexpr Dims<0> shape() const { return {}; }
  constexpr AnyDevice device() const { return {}; }
  template <int N> SKEIN_ALWAYS_INLINE constexpr BoundConstant<S, N> bind(const Dims<N>&) const { return {value}; }
};

/// g(i) at the row-major index i of the given extents.
template <class G, int Rank, class Device_> struct Generator {
  using Scalar = decltype(std::declval<const G&>()(0L));
  using Device = Device_;
  using skein_expression = void;
  static constexpr int rank = Rank;
  static constexpr bool sound = true;
  G generate;
  Dims<Rank> extents;
  Device where{};
  constexpr const Dims<Rank>& shape() const { return extents; }
  constexpr Device device() const { return where; }
  template <int N> constexpr BoundGenerator<G, N> bind(const Dims<N>&) const {
    return {generate, 0, broadcast_strides<N>(extents, row_major(extents))};
  }
};

/// f of its arguments, broadcast against each other; holds them.
template <class F, class Indices, class... Args> struct MapNode;
template <class F, int... I, class... Args> struct MapNode<F, std::integer_sequence<int, I...>, Args...> : Slot<I, Args>... {
  using skein_expression = void;
  static constexpr bool sound = (Args::sound && ...);
  using Scalar = std::remove_cvref_t<decltype(std::declval<const F&>()(std::declval<typename Args::Scalar>()...))>;
  using Device = typename CommonDevice<typename Args::Device...>::type;
  static constexpr int rank = [] {
    int r = 0;
    ((r = max_rank(r, Args::rank)), ...);
    return r;
  }();
  F f;
  Dims<rank> extents;

  explicit constexpr MapNode(F function, Args... args)
      : Slot<I, Args>{std::move(args)}..., f(std::move(function)),
        extents(common_shape(static_cast<const Slot<I, Args>&>(*this).value...)) {
    if constexpr (sound && !std::is_same_v<Device, AnyDevice>) device();
  }
  constexpr const Dims<rank>& shape() const { return extents; }
  constexpr Device device() const { return common_ordinal<Device>(static_cast<const Slot<I, Args>&>(*this).value...); }
  template <int N> SKEIN_ALWAYS_INLINE constexpr auto bind(const Dims<N>& to) const {
    return BoundMap<F, std::integer_sequence<int, I...>, decltype(std::declval<const Args&>().template bind<N>(to))...>(
        f, static_cast<const Slot<I, Args>&>(*this).value.template bind<N>(to)...);
  }
};
template <class F, class... Args> using MapOf =
    MapNode<F, std::make_integer_sequence<int, static_cast<int>(sizeof...(Args))>, Args...>;

/// How an operand enters a tree: nodes by value, views as views of const, tensors by tensor.hpp's specialisation.
template <class T> struct Leaf {
  template <class U> static constexpr T make(U&& node) { return std::forward<U>(node); }
};
template <class S, int R, class D> struct Leaf<TensorView<S, R, D>> {
  static constexpr TensorView<const S, R, D> make(const TensorView<S, R, D>& v) {
    return {v.data, v.extents, v.strides, v.where};
  }
};
template <class S, int R, class D> struct Leaf<TensorView<const S, R, D>> {
  static constexpr TensorView<const S, R, D> make(const TensorView<const S, R, D>& v) { return v; }
};
/// An array of a layer that is written and not read.
template <class T> concept WriteOnlyExpression = requires { typename std::remove_cvref_t<T>::write_only; };
template <class T> inline constexpr bool is_there_to_be_read = !WriteOnlyExpression<T>;
/// Refuses it where it is an operand; a number stands there in its place.
template <class T> constexpr auto in_place_of_write_only() {
  static_assert(is_there_to_be_read<std::remove_cvref_t<T>>,
                "f.dx() is written and not read, since it is not there where no layer wants it: keep the expression, const auto "
                "dx = f.dy() * 2, and read that");
  return Constant<typename std::remove_cvref_t<T>::Scalar>{};
}
template <class T> SKEIN_ALWAYS_INLINE constexpr auto leaf(T&& operand) {
  if constexpr (WriteOnlyExpression<T>) return in_place_of_write_only<T>();
  else return Leaf<std::remove_cvref_t<T>>::make(std::forward<T>(operand));
}

/// What stands for an expression that was refused: keeps the compiler quiet about all that follows from it.
template <class Node> struct Unsound : Node { static constexpr bool sound = false; };

/// A node whose extents are in its type: a layer's, see static_view.hpp.
template <class Node> inline constexpr bool has_static_extents = requires { typename Node::static_expression; };
/// Its extents; none for a number, whose rank is 0.
template <class Node> constexpr Extents static_extents() {
  if constexpr (has_static_extents<Node>) return Node::extents;
  else return {};
}
template <class... Nodes> constexpr Extents broadcast_all() {
  Extents e{};
  const Extents each[] = {static_extents<Nodes>()...};
  for (const Extents& one : each)
    if (e.rank >= 0) e = broadcast_extents(e, one);
  return e;
}
/// Facts about the operands of one node of a layer's expression; all hold elsewhere.
template <class... Nodes> struct StaticFacts {
  static constexpr bool any = (has_static_extents<Nodes> || ...);
  static constexpr bool all = !any || ((has_static_extents<Nodes> || std::is_same_v<typename Nodes::Device, AnyDevice>)&&...);
  static constexpr bool broadcast = !any || !all || broadcast_all<Nodes...>().rank >= 0;
  static constexpr bool sound = all && broadcast;
};
template <class F, class Indices, class... Args> struct StaticMapNode;

template <class F, class... Args> constexpr auto make_map(F f, Args... args) {
  if constexpr ((has_static_extents<Args> || ...))
    return StaticMapNode<F, std::make_integer_sequence<int, static_cast<int>(sizeof...(Args))>, Args...>(f, args...);
  else return MapOf<F, Args...>(f, std::move(args)...);
}

/// Facts about the operands of one node; the refusals are functions, since clang takes a class whose static_assert failed for
/// incomplete and says so in a second error.
template <class... Nodes> struct OperandFacts {
  static constexpr bool sound = (Nodes::sound && ...);
  static constexpr bool one_device =
      !sound || !std::is_same_v<typename CommonDevice<typename Nodes::Device...>::type, MixedDevices>;
};
template <class A, class B> inline constexpr bool same_scalars =
    !A::sound || !B::sound || std::is_same_v<typename A::Scalar, typename B::Scalar>;

template <class... Nodes> constexpr void assert_one_device() {
  static_assert(OperandFacts<Nodes...>::one_device,
                "tensors of different devices meet in one expression: move one of them with .to<Device>() first");
}
template <class A, class B> constexpr void assert_same_scalars() {
  static_assert(same_scalars<A, B>,
                "tensors of different scalar types meet in one expression: convert one of them with cast<Scalar>() first");
}

template <class F, class A, class... Rest> constexpr auto checked_map(F f, A a, Rest... rest) {
  if constexpr (!OperandFacts<A, Rest...>::one_device) {
    assert_one_device<A, Rest...>();
    return Unsound<A>{std::move(a)};
  } else if constexpr (!StaticFacts<A, Rest...>::sound) {
    static_assert(StaticFacts<A, Rest...>::all,  // in place, so that the trail of the error stays short
                  "a layer's expression holds a tensor with extents of run time: what it reads comes from its frame");
    static_assert(StaticFacts<A, Rest...>::broadcast,
                  "the extents of these operands differ: aligned at the last, each must be equal or 1");
    return Unsound<A>{std::move(a)};
  } else {
    return make_map(f, std::move(a), std::move(rest)...);
  }
}
template <class F, class A, class B> constexpr auto checked_pair(F f, A a, B b) {
  if constexpr (!OperandFacts<A, B>::one_device) {
    assert_one_device<A, B>();
    return Unsound<A>{std::move(a)};
  } else if constexpr (!same_scalars<A, B>) {
    assert_same_scalars<A, B>();
    return Unsound<A>{std::move(a)};
  } else if constexpr (!StaticFacts<A, B>::sound) {
    static_assert(StaticFacts<A, B>::all,  // in place, so that the trail of the error stays short
                  "a layer's expression holds a tensor with extents of run time: what it reads comes from its frame");
    static_assert(StaticFacts<A, B>::broadcast,
                  "the extents of these operands differ: aligned at the last, each must be equal or 1");
    return Unsound<A>{std::move(a)};
  } else {
    return make_map(f, std::move(a), std::move(b));
  }
}

}  // namespace detail

/// A bare number as an operand.
template <class T> concept Number = std::is_arithmetic_v<std::remove_cvref_t<T>>;
/// An operand of a binary operator: an expression, or a number beside one.
template <class A, class B> concept BinaryOperands = (TensorExpression<A> && (TensorExpression<B> || Number<B>)) ||
                                                     (Number<A> && TensorExpression<B>);

/// f applied to each value of the expressions, broadcast against each other. f must be a function object (not a lambda where
/// nvcc compiles it); if it says `using vectorizes = void;` it is called with whole xsimd batches too.
template <class F, TensorExpression... Args> constexpr auto map(F f, Args&&... args) {
  return detail::checked_map(f, detail::leaf(std::forward<Args>(args))...);
}

namespace detail {
/// Has S, a whole number or a bool, this number?
template <class S, class T> constexpr bool can_hold(T x) {
  if constexpr (std::is_same_v<S, bool>) return x == T(0) || x == T(1);
  else if constexpr (std::is_floating_point_v<T>) {
    const T end = static_cast<T>(1ull << (std::numeric_limits<S>::digits - 1)) * 2;
    return x >= (std::is_signed_v<S> ? -end : T(0)) && x < end && static_cast<T>(static_cast<S>(x)) == x;
  } else {
    return (std::is_signed_v<T> && x < T(0) ? std::is_signed_v<S> : static_cast<S>(x) >= S(0)) &&
           static_cast<T>(static_cast<S>(x)) == x;
  }
}
[[noreturn]] SKEIN_NOINLINE inline void throw_number(double x, bool assigned) {
  throw ArgumentError(
      assigned ? text("assignment: the number {} is written to a tensor of whole numbers whose type cannot hold it: round it, or "
                      "take a tensor of another scalar type",
                      x)
               : text("elementwise operation: the number {} stands beside a tensor of whole numbers whose type cannot hold "
                      "it: convert the tensor with cast<Scalar>() first",
                      x));
}
/// A number as S, the scalar of the tensor beside it, or to which it is assigned; throws ArgumentError where whole numbers would
/// make another of it.
template <class S, class T> SKEIN_ALWAYS_INLINE constexpr Constant<S> number_beside(T x, bool assigned = false) {
  if constexpr (std::is_integral_v<S> && !std::is_same_v<S, T>)
    if (!can_hold<S>(x)) throw_number(static_cast<double>(x), assigned);
  return {static_cast<S>(x)};
}

/// An operand beside one of type Other: a number takes the scalar type of the tensor beside it.
template <class Other, class T> SKEIN_ALWAYS_INLINE constexpr auto operand(T&& x) {
  if constexpr (Number<T>) return number_beside<typename std::remove_cvref_t<Other>::Scalar, std::remove_cvref_t<T>>(x);
  else if constexpr (WriteOnlyExpression<T>) return in_place_of_write_only<T>();
  else return leaf(std::forward<T>(x));
}
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI
