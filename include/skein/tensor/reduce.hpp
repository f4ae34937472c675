// SPDX-License-Identifier: Apache-2.0
// Reductions: sum, mean, max, min, argmax, argmin, norm and dot, of a whole expression or along one axis. They fuse with
// what they reduce (`sum(a * b)` stores no product) and are computed where they are written: the result of an axis is a
// tensor, which an expression around it then owns; the whole is a number on the host, for which a GPU is waited.
#pragma once
#include <algorithm>

#include "reducer.hpp"
#include "tensor.hpp"

namespace skein::inline SKEIN_ABI {

struct Keep {};
/// sum(a, 1, keep): the reduced axis stays with extent 1, so that the result broadcasts against a.
inline constexpr Keep keep{};

/// l1: sum of magnitudes; l2: Euclidean; inf: largest magnitude.
enum class Norm { l1, l2, inf };

namespace detail {

template <class E> using NodeOf = std::remove_cvref_t<decltype(leaf(std::declval<E>()))>;
/// Sums of masks count; those of integers do not end where one value would.
template <class S> using SumResult = std::conditional_t<std::is_floating_point_v<S>, S, Wide<S>>;
template <class S> using MeanResult = std::conditional_t<std::is_floating_point_v<S>, S, double>;

[[noreturn]] SKEIN_NOINLINE inline void throw_no_values(const char* operation) {
  throw ShapeError(std::string(operation) + ": the tensor has no values");
}

template <class Op, class Result, class E> Result reduce_all(E&& e, Finish finish, const char* operation) {
  const auto node = leaf(std::forward<E>(e));
  using Node = std::remove_cvref_t<decltype(node)>;
  constexpr int N = max_rank(Node::rank, 1);
  Loop<N> loop{padded<N>(node.shape(), 1), {}};
  if (loop.empty()) {
    if (Op::exact) throw_no_values(operation);
    return finish.template apply<Result>(Op::identity);
  }
  auto bound = node.template bind<N>(loop.extents);
  bool first = true;
  bound.leaves([&](auto& l) {
    if (first) loop.stride = l.stride;  // no target: the order of the first operand's memory
    first = false;
  });
  sort_axes(loop, bound);
  collapse(loop, bound);
  return finish.template apply<Result>(Reducer<typename Node::Device>::template all<Op>(node.device(), loop, bound));
}

/// Extents and strides of the dense result, with the axis still there (stride 0).
template <int N> constexpr Loop<N> axis_loop(const Dims<N>& extents, int axis) {
  Loop<N> loop{extents, {}};
  long step = 1;
  for (int i = N - 1; i >= 0; --i)
    if (i != axis) {
      loop.stride.e[i] = step;
      step *= extents.e[i];
    }
  return loop;
}
template <int R> constexpr Dims<R - 1> without_axis(const Dims<R>& extents, int axis) {
  Dims<R - 1> d;
  for (int i = 0, j = 0; i < R; ++i)
    if (i != axis) d.e[j++] = extents.e[i];
  return d;
}
template <class S, int R, class D> Tensor<S, R + 1, D> with_axis(Tensor<S, R, D>&& t, int axis) {
  Dims<R + 1> d;
  for (int i = 0, j = 0; i < R + 1; ++i) d.e[i] = i == axis ? 1 : t.shape().e[j++];
  return std::move(t).reshape(d);
}

template <class Node> constexpr void assert_axis() {
  static_assert(Node::rank >= 1, "a reduction along an axis takes a tensor of rank 1 or more: a number has no axis");
}

template <class Node> inline constexpr bool is_reduced_along_an_axis = false;

/// Runs body(node, loop, bound, axis, result) and returns the result, of one rank less.
template <class Result, class E, class Body>
auto reduce_axis(E&& e, int axis, bool needs_values, const char* operation, Body&& body) {
  const auto node = leaf(std::forward<E>(e));
  using Node = std::remove_cvref_t<decltype(node)>;
  if constexpr (has_static_extents<Node>) {
    static_assert(is_reduced_along_an_axis<Node>,
                  "a layer's expressions are not reduced along an axis: the larger of two values is maximum(a, b), and sums are "
                  "sum_leading(e), sum_batch(e) and sum_all(e)");
    return node;
  } else if constexpr (Node::rank >= 1) {
    constexpr int N = Node::rank;
    const int a = checked_axis(axis, N, operation);
    Tensor<Result, N - 1, typename Node::Device> result(without_axis(node.shape(), a), node.device());
    if (needs_values && node.shape().e[a] == 0) throw_no_values(operation);
    auto loop = axis_loop(node.shape(), a);
    if (loop.empty()) return result;
    auto bound = node.template bind<N>(loop.extents);
    const int place = collapse(loop, bound, a);
    body(node, loop, bound, place, result);
    return result;
  } else {
    assert_axis<Node>();
    return Tensor<Result, 0, typename Node::Device>{};
  }
}
template <class Op, class Result, class E> auto reduce_axis_by(E&& e, int axis, bool mean, bool root, const char* operation) {
  return reduce_axis<Result>(std::forward<E>(e), axis, Op::exact || mean, operation,
                             [&](const auto& node, auto& loop, auto& bound, int a, auto& result) {
                               using Device = typename std::remove_cvref_t<decltype(node)>::Device;
                               const Finish finish{mean ? static_cast<double>(loop.extents.e[a]) : 1.0, root};
                               Reducer<Device>::template axis<Op>(result.data(), node.device(), loop, bound, a, finish);
                             });
}
template <class Better, class E> long arg_all(E&& e, const char* operation) {
  const auto node = leaf(std::forward<E>(e));
  using Node = std::remove_cvref_t<decltype(node)>;
  constexpr int N = max_rank(Node::rank, 1);
  Loop<N> loop{padded<N>(node.shape(), 1), {}};
  loop.stride = row_major(loop.extents);
  if (loop.empty()) throw_no_values(operation);
  auto bound = node.template bind<N>(loop.extents);
  collapse(loop, bound);
  return Reducer<typename Node::Device>::template arg_all<Better>(node.device(), loop, bound);
}
template <class Better, class E> auto arg_axis(E&& e, int axis, const char* operation) {
  return reduce_axis<long>(std::forward<E>(e), axis, true, operation,
                           [&](const auto& node, auto& loop, auto& bound, int a, auto& result) {
                             using Device = typename std::remove_cvref_t<decltype(node)>::Device;
                             Reducer<Device>::template arg_axis<Better>(result.data(), node.device(), loop, bound, a);
                           });
}
template <class T> using ScalarOf = typename std::remove_cvref_t<T>::Scalar;
/// The expression in the type in which a sum of its products is; of numbers that are no small integers, as it is.
template <TensorExpression E> decltype(auto) widened(E&& e) {
  using S = ScalarOf<E>;
  if constexpr (std::is_integral_v<S> && !std::is_same_v<S, bool> && sizeof(S) < sizeof(long))
    return cast<long>(std::forward<E>(e));
  else return std::forward<E>(e);
}
/// Few values of S have a sum that no long holds.
template <class S> inline constexpr bool sum_may_wrap = std::is_integral_v<S> && sizeof(S) == sizeof(long);
/// Has no square that went into this norm over- or underflown? Not a number where that is none.
template <class S> bool squares_fit(S norm) {
  constexpr S least = sizeof(S) == sizeof(float) ? S(0x1p-51) : S(0x1p-485);  // the root of the smallest number / epsilon
  return !(norm < least || norm > std::numeric_limits<S>::max());
}
/// The Euclidean norm, where squares do not fit of the values divided by the largest.
template <class E, class S = ScalarOf<E>> auto euclidean(const E& e) {
  const S norm = reduce_all<SumOf<S>, S>(square(e), {1, true}, "norm");
  if (squares_fit(norm) || e.shape().count() == 0) return norm;
  const S largest = reduce_all<NormOf<S>, S>(abs(e), {}, "norm");
  if (!(largest > 0 && largest <= std::numeric_limits<S>::max())) return largest;
  return static_cast<S>(largest * reduce_all<SumOf<S>, S>(square(e / largest), {1, true}, "norm"));
}
/// A GPU takes one pass, and nobody waits for its end.
template <class E, class S = ScalarOf<E>> auto euclidean(const E& e, int axis) {
  if constexpr (!std::same_as<typename E::Device, Cpu> && !std::same_as<typename E::Device, AnyDevice>) {
    return reduce_axis<S>(e, axis, false, "norm", [&](const auto& node, auto& loop, auto& bound, int a, auto& result) {
      Reducer<typename E::Device>::norm_axis(result.data(), node.device(), loop, bound, a);
    });
  } else {
    auto norms = reduce_axis_by<SumOf<S>, S>(square(e), axis, false, true, "norm");
    if (std::all_of(norms.begin(), norms.end(), squares_fit<S>) || e.shape().count() == 0) return norms;
    auto largest = reduce_axis_by<NormOf<S>, S>(abs(e), axis, false, false, "norm");
    largest = where(largest > 0 && largest <= std::numeric_limits<S>::max(), largest, 1);
    const auto divided = e / with_axis(largest.copy(), axis < 0 ? axis + E::rank : axis);
    return decltype(norms)(reduce_axis_by<SumOf<S>, S>(square(divided), axis, false, true, "norm") * largest);
  }
}
}  // namespace detail

/// The sum of all values (of a mask: how many hold). Floats are added in groups of at most 512 and these in double, integers in
/// long, which is then the result.
template <TensorExpression E> auto sum(E&& e) {
  using S = detail::ScalarOf<E>;
  return detail::reduce_all<detail::SumOf<S>, detail::SumResult<S>>(std::forward<E>(e), {}, "sum");
}
/// Sums along one axis (negative: from the back): a tensor of one rank less.
template <TensorExpression E> auto sum(E&& e, int axis) {
  using S = detail::ScalarOf<E>;
  return detail::reduce_axis_by<detail::SumOf<S>, detail::SumResult<S>>(std::forward<E>(e), axis, false, false, "sum");
}

/// The mean of all values; of integers, in double.
template <TensorExpression E> auto mean(E&& e) {
  using S = detail::ScalarOf<E>;
  if constexpr (detail::sum_may_wrap<S>) {
    return mean(cast<double>(std::forward<E>(e)));
  } else {
    const long n = e.shape().count();
    if (n == 0) detail::throw_no_values("mean");
    return detail::reduce_all<detail::SumOf<S>, detail::MeanResult<S>>(std::forward<E>(e), {static_cast<double>(n)}, "mean");
  }
}
template <TensorExpression E> auto mean(E&& e, int axis) {
  using S = detail::ScalarOf<E>;
  if constexpr (detail::sum_may_wrap<S>) return mean(cast<double>(std::forward<E>(e)), axis);
  else return detail::reduce_axis_by<detail::SumOf<S>, detail::MeanResult<S>>(std::forward<E>(e), axis, true, false, "mean");
}

/// The largest value; throws ShapeError where there is none. NaNs are passed over; where all are, it is -infinity.
template <TensorExpression E> auto max(E&& e) {
  using S = detail::ScalarOf<E>;
  return detail::reduce_all<detail::MaxOf<S>, S>(std::forward<E>(e), {}, "max");
}
template <TensorExpression E> auto max(E&& e, int axis) {
  using S = detail::ScalarOf<E>;
  return detail::reduce_axis_by<detail::MaxOf<S>, S>(std::forward<E>(e), axis, false, false, "max");
}
/// The smallest value; throws ShapeError where there is none. NaNs are passed over; where all are, it is infinity.
template <TensorExpression E> auto min(E&& e) {
  using S = detail::ScalarOf<E>;
  return detail::reduce_all<detail::MinOf<S>, S>(std::forward<E>(e), {}, "min");
}
template <TensorExpression E> auto min(E&& e, int axis) {
  using S = detail::ScalarOf<E>;
  return detail::reduce_axis_by<detail::MinOf<S>, S>(std::forward<E>(e), axis, false, false, "min");
}

/// The row-major index of the first largest value. NaNs are passed over; where all are, the first.
template <TensorExpression E> long argmax(E&& e) { return detail::arg_all<functions::Greater>(std::forward<E>(e), "argmax"); }
/// Along one axis: a tensor of indices (long).
template <TensorExpression E> auto argmax(E&& e, int axis) {
  return detail::arg_axis<functions::Greater>(std::forward<E>(e), axis, "argmax");
}
/// The row-major index of the first smallest value.
template <TensorExpression E> long argmin(E&& e) { return detail::arg_all<functions::Less>(std::forward<E>(e), "argmin"); }
template <TensorExpression E> auto argmin(E&& e, int axis) {
  return detail::arg_axis<functions::Less>(std::forward<E>(e), axis, "argmin");
}

/// The norm of all values as one vector; of integers, in double. Not a number where a value is none. The Euclidean norm of values
/// whose squares over- or underflow takes two more passes (not along an axis of a GPU).
template <TensorExpression E> auto norm(E&& e, Norm which = Norm::l2) {
  using S = detail::ScalarOf<E>;
  if constexpr (!std::is_floating_point_v<S>) {
    return norm(cast<double>(std::forward<E>(e)), which);
  } else {
    switch (which) {
      case Norm::l1:
        return detail::reduce_all<detail::SumOf<S>, S>(abs(std::forward<E>(e)), {}, "norm");
      case Norm::inf:
        return detail::reduce_all<detail::NormOf<S>, S>(abs(std::forward<E>(e)), {}, "norm");
      default:
        return detail::euclidean(e);
    }
  }
}
template <TensorExpression E> auto norm(E&& e, Norm which, int axis) {
  using S = detail::ScalarOf<E>;
  if constexpr (!std::is_floating_point_v<S>) {
    return norm(cast<double>(std::forward<E>(e)), which, axis);
  } else {
    switch (which) {
      case Norm::l1:
        return detail::reduce_axis_by<detail::SumOf<S>, S>(abs(std::forward<E>(e)), axis, false, false, "norm");
      case Norm::inf:
        return detail::reduce_axis_by<detail::NormOf<S>, S>(abs(std::forward<E>(e)), axis, false, false, "norm");
      default:
        return detail::euclidean(e, axis);
    }
  }
}

#define SKEIN_AXIS(name)                                                                                                  \
  template <TensorExpression E, std::floating_point Axis> auto name(E&& e, Axis) {                                        \
    static_assert(!std::floating_point<Axis>,                                                                             \
                  #name ": an axis is a whole number; the larger and the smaller of two values are maximum and minimum"); \
    return detail::Unsound<decltype(detail::leaf(std::forward<E>(e)))>{detail::leaf(std::forward<E>(e))};                 \
  }
SKEIN_AXIS(sum)
SKEIN_AXIS(mean)
SKEIN_AXIS(max)
SKEIN_AXIS(min)
SKEIN_AXIS(argmax)
SKEIN_AXIS(argmin)
#undef SKEIN_AXIS

#define SKEIN_KEEP(name)                                                           \
  template <TensorExpression E> auto name(E&& e, int axis, Keep) {                 \
    const int a = detail::checked_axis(axis, std::remove_cvref_t<E>::rank, #name); \
    return detail::with_axis(name(std::forward<E>(e), a), a);                      \
  }
SKEIN_KEEP(sum)
SKEIN_KEEP(mean)
SKEIN_KEEP(max)
SKEIN_KEEP(min)
SKEIN_KEEP(argmax)
SKEIN_KEEP(argmin)
#undef SKEIN_KEEP

/// The inner product of two vectors of one length; of integers, in long.
template <TensorExpression A, TensorExpression B> auto dot(A&& a, B&& b) {
  static_assert(std::remove_cvref_t<A>::rank == 1 && std::remove_cvref_t<B>::rank == 1,
                "dot takes two vectors: flatten() them first");
  if (!(a.shape() == b.shape())) detail::throw_shapes("dot", a.shape(), b.shape(), "differ: both vectors must have one length");
  return sum(detail::widened(std::forward<A>(a)) * detail::widened(std::forward<B>(b)));
}

}  // namespace skein::inline SKEIN_ABI
