// SPDX-License-Identifier: Apache-2.0
// assign(): one fused pass over an expression into a view. Evaluator<Device> is the single point that a device specialises
// (here for Cpu; tensor/cuda/ adds the other): it gets the collapsed loop nest and the trivially copyable tree. An
// assignment whose target overlaps a source in another order goes through a temporary.
#pragma once
#include "../core/workers.hpp"
#include "../device/memory.hpp"
#include "expression.hpp"
#include "loop.hpp"

namespace skein::inline SKEIN_ABI {

namespace detail {

/// How a device runs a loop nest. Specialised for each device; the primary template is not defined.
template <class Device> struct Evaluator;

template <> struct Evaluator<Cpu> {
  /// *to = bound over the whole nest; neither is empty.
  template <class S, int N, class B> static void assign(S* to, Cpu, const Loop<N>& loop, B bound) {
    bool unit = loop.stride.e[N - 1] == 1;
    bound.leaves([&](auto& l) { unit = unit && l.stride.e[N - 1] == 1; });
    const long n = loop.extents.e[N - 1];
    if (unit) for_each_row(loop, 1, to, bound, [&] { row<Access::unit>(to, 1, bound, n); });
    else for_each_row(loop, 1, to, bound, [&] { row<Access::strided>(to, loop.stride.e[N - 1], bound, n); });
  }

  /// One row. Harmless overlap only (the same value is read and then written), which the compiler is told.
  template <Access A, class S, class B> static SKEIN_ALWAYS_INLINE void row(S* to, long stride, B bound, long n) {
    if constexpr (std::is_same_v<typename B::Lane, S> && is_batched<S>) {
      constexpr long W = batch_size<S>;
      long i = 0;
      if (A == Access::unit || stride == 1) {
        if constexpr (A == Access::unit)
          for (; i + 4 * W <= n; i += 4 * W) {
            const auto a = as_batch<S>(bound.template batch<A>(i)), b = as_batch<S>(bound.template batch<A>(i + W));
            const auto c = as_batch<S>(bound.template batch<A>(i + 2 * W)), d = as_batch<S>(bound.template batch<A>(i + 3 * W));
            a.store_unaligned(to + i);
            b.store_unaligned(to + i + W);
            c.store_unaligned(to + i + 2 * W);
            d.store_unaligned(to + i + 3 * W);
          }
        for (; i + W <= n; i += W) as_batch<S>(bound.template batch<A>(i)).store_unaligned(to + i);
        if (i < n) store_part<S>(to + i, as_batch<S>(bound.template part<A>(i, n - i)), n - i);
      } else {
        for (; i + W <= n; i += W) store_strided<S>(to + i * stride, stride, as_batch<S>(bound.template batch<A>(i)), W);
        if (i < n) store_strided<S>(to + i * stride, stride, as_batch<S>(bound.template part<A>(i, n - i)), n - i);
      }
    } else {
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#pragma GCC ivdep
#endif
      for (long i = 0; i < n; ++i) to[A == Access::unit ? i : i * stride] = static_cast<S>(bound.template at<A>(i));
    }
  }
};

/// What an assignment refuses to compile: the first fault only.
template <class S, int R, class D, class Node> struct Assignment {
  static constexpr bool sound = Node::sound;
  static constexpr bool device =
      !sound || std::is_same_v<typename Node::Device, D> || std::is_same_v<typename Node::Device, AnyDevice>;
  static constexpr bool rank = !sound || !device || Node::rank <= R;
  static constexpr bool writes = !sound || !device || !rank || !std::is_const_v<S>;
  static constexpr bool scalar = !sound || !device || !rank || !writes || std::is_same_v<typename Node::Scalar, S> ||
                                 std::is_same_v<typename Node::Scalar, bool>;
  static constexpr bool legal = sound && device && rank && writes && scalar;
};
template <class Rule> constexpr void assert_assignment() {
  static_assert(Rule::device, "an expression is assigned to a tensor of another device: move it with .to<Device>() first");
  static_assert(Rule::rank, "an expression of higher rank does not broadcast to its target: reduce, slice or reshape it first");
  static_assert(Rule::writes,
                "the target of an assignment is a view of const values: take the view of a tensor that is not const");
  static_assert(
      Rule::scalar,
      "an expression is assigned to a tensor of another scalar type: convert it with cast<Scalar>() first (of integers of 8 and "
      "16 bits arithmetic makes int, as in C++)");
}
/// Is `view of S, rank R on D = E` legal? Asked at the user's entry points, so that the trail of an error stays short.
template <class S, int R, class D, class E> constexpr bool may_assign() {
  if constexpr (TensorExpression<E>) {
    using Rule = Assignment<S, R, D, decltype(leaf(std::declval<E>()))>;
    if constexpr (!Rule::legal) assert_assignment<Rule>();
    return Rule::legal;
  } else {
    return true;
  }
}

template <int N, int R> constexpr Dims<N> padded(const Dims<R>& d, long fill) {
  Dims<N> out;
  for (int i = 0; i < N; ++i) out.e[i] = i < N - R ? fill : d.e[i - (N - R)];
  return out;
}

template <int A, int B> constexpr void check_fits(const Dims<A>& from, const Dims<B>& to) {
  bool fits = true;
  for (int i = 0; i < A; ++i) fits = fits && (from.e[i] == 1 || from.e[i] == to.e[B - A + i]);
  if (!fits)
    throw_shapes("assignment", from, to, "differ: the left is that of the expression, and does not broadcast to its target");
}

/// Out of line, so that the common path of an assignment stays short.
template <class S, int R, class D, class Node>
SKEIN_NOINLINE void through_temporary(const TensorView<S, R, D>& to, const Node& node);

template <class S, int R, class D, class Node>
SKEIN_ALWAYS_INLINE void evaluate(const TensorView<S, R, D>& to, const Node& node, const Worker* worker) {
  check_fits(node.shape(), to.extents);
  if constexpr (!std::is_same_v<D, Cpu> && !std::is_same_v<typename Node::Device, AnyDevice>)
    if (!(node.device() == to.where))
      throw ArgumentError("assignment: the expression is on another ordinal of the device than its target: move it with .to()");
  constexpr int N = max_rank(R, 1);
  Loop<N> loop{padded<N>(to.extents, 1), padded<N>(to.strides, 0)};
  if (loop.empty()) return;
  auto bound = node.template bind<N>(loop.extents);
  bool spoiled = false;
  bound.leaves([&](auto& l) { spoiled = spoiled || spoils(to.data, loop, l); });
  if (spoiled) {
    if (worker && worker->count > 1)
      throw ArgumentError(
          "assignment: several workers write into memory that the expression reads in another order: assign to a tensor of its "
          "own");
    through_temporary(to, node);
    return;
  }
  sort_axes(loop, bound);
  collapse(loop, bound);
  S* data = to.data;
  if (worker && worker->count > 1) {
    const int outer = N - loop.rank;
    const auto [begin, end] = worker->slice(loop.extents.e[outer], outer == N - 1 ? 64 : 1);
    if (begin == end) return;
    data += loop.stride.e[outer] * begin;
    bound.advance(outer, begin);
    loop.extents.e[outer] = end - begin;
  }
  Evaluator<D>::assign(data, to.where, loop, bound);
}

template <class S, int R, class D, class Node> void through_temporary(const TensorView<S, R, D>& to, const Node& node) {
  Arena<S, D> memory(static_cast<std::size_t>(to.size()), to.where);
  const TensorView<S, R, D> temporary{memory.data(), to.extents, row_major(to.extents), to.where};
  evaluate(temporary, node, nullptr);
  evaluate(to, TensorView<const S, R, D>(temporary), nullptr);
}

template <class S, int R, class D, class E>
SKEIN_ALWAYS_INLINE void assign_to(const TensorView<S, R, D>& to, E&& e, const Worker* worker) {
  if constexpr (Number<E>) {
    evaluate(to, number_beside<std::remove_const_t<S>, std::remove_cvref_t<E>>(e, true), worker);
  } else {
    if constexpr (requires { e.view(); }) evaluate(to, std::as_const(e).view(), worker);
    else evaluate(to, e, worker);
  }
}

}  // namespace detail

/// A type of another library that can be written into a tensor of the host; specialised by its header (xtensor.hpp) with
/// a constant rank, shape_as<Rank>(e), fill(fresh view, e) and assign(view, e).
template <class E> struct ForeignExpression {};
template <class E> concept Foreign = requires { ForeignExpression<std::remove_cvref_t<E>>::rank; };

/// Evaluates the expression (or a number) into the view, in one fused pass, broadcast to its extents. Throws ShapeError with
/// both shapes, and ArgumentError for a number that a view of whole ones cannot hold. Refuses at compile time: another device,
/// another scalar type, a higher rank, a view of const.
template <class S, int R, class D, class E> void assign(const TensorView<S, R, D>& to, E&& expression) {
  if constexpr (Foreign<E>) ForeignExpression<std::remove_cvref_t<E>>::assign(to, expression);
  else if constexpr (detail::may_assign<S, R, D, E>()) detail::assign_to(to, std::forward<E>(expression), nullptr);
}
/// Assigns by all workers of a set: each calls it, and writes its slice of the outermost axis. No barrier at the end.
template <class S, int R, class D, class E> void assign(const TensorView<S, R, D>& to, E&& expression, const Worker& worker) {
  if constexpr (detail::may_assign<S, R, D, E>()) detail::assign_to(to, std::forward<E>(expression), &worker);
}

namespace detail {
template <class T> struct IsView : std::false_type {};
template <class S, int R, class D> struct IsView<TensorView<S, R, D>> : std::true_type {};
}  // namespace detail

#define SKEIN_COMPOUND(op)                                                                                                    \
  template <class V, class E>                                                                                                 \
  requires(detail::IsView<std::remove_cvref_t<V>>::value && (TensorExpression<E> || Number<E>)) const std::remove_cvref_t<V>& \
  operator op##=(const V& to, E&& e) {                                                                                        \
    assign(to, to op std::forward<E>(e));                                                                                     \
    return to;                                                                                                                \
  }
SKEIN_COMPOUND(+)
SKEIN_COMPOUND(-)
SKEIN_COMPOUND(*)
SKEIN_COMPOUND(/)
#undef SKEIN_COMPOUND

}  // namespace skein::inline SKEIN_ABI
