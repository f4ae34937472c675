// SPDX-License-Identifier: Apache-2.0
// How a device reduces an expression, without storing it first: Reducer<Device> is the point that a device specialises (here
// Cpu). Sums are kept in batches over at most 128 values a lane, along a row in four batches side by side, which are joined
// before they are added up in double: at most 512 floats are added in float, whatever the length. (The four in double were 5 %
// slower.) The functions that users call are in reduce.hpp.
#pragma once
#include <cmath>
#include <limits>

#include "functions.hpp"
#include "loop.hpp"

namespace skein::inline SKEIN_ABI::detail {

/// The type in which values of S are summed.
template <class S> using Wide = std::conditional_t<std::is_floating_point_v<S>, double, long>;

/// A reduction: identity, combine (scalars and batches), and what becomes of the total.
template <class S> struct SumOf {
  using Total = Wide<S>;
  using Combine = functions::Plus;
  static constexpr Total identity = 0;
  static constexpr bool exact = false;  // partial sums go to Total every so often
};
template <class S> struct MaxOf {
  using Total = S;
  using Combine = functions::GreaterNumber;
  static constexpr S identity =
      std::numeric_limits<S>::has_infinity ? -std::numeric_limits<S>::infinity() : std::numeric_limits<S>::lowest();
  static constexpr bool exact = true;
};
/// The greatest magnitude, for a norm: not a number where one of them is none.
template <class S> struct NormOf : MaxOf<S> { using Combine = functions::Maximum; };
template <class S> struct MinOf {
  using Total = S;
  using Combine = functions::LesserNumber;
  static constexpr S identity =
      std::numeric_limits<S>::has_infinity ? std::numeric_limits<S>::infinity() : std::numeric_limits<S>::max();
  static constexpr bool exact = true;
};

/// From the total to the result: divided (mean), or its root (Euclidean norm).
struct Finish {
  double count = 1;
  bool root = false;
  template <class R, class T> constexpr R apply(T total) const {
    if constexpr (std::is_floating_point_v<R>)
      return static_cast<R>(root ? std::sqrt(static_cast<double>(total)) : static_cast<double>(total) / count);
    else return static_cast<R>(total);
  }
};

/// Moves axis `from` to place `to`, the others keep their order.
template <int N, class B> constexpr void rotate_axis(Loop<N>& loop, B& bound, int from, int to) {
  for (int i = from; i != to; i += from < to ? 1 : -1) {
    const int j = i + (from < to ? 1 : -1);
    swap_axes(loop.extents, i, j);
    swap_axes(loop.stride, i, j);
    bound.leaves([&](auto& l) { swap_axes(l.stride, i, j); });
  }
}

template <class Device> struct Reducer;

template <> struct Reducer<Cpu> {
  template <class B> static constexpr bool batches =
      !std::is_void_v<typename B::Lane> && std::is_same_v<typename B::Lane, typename B::Scalar> && is_batched<typename B::Scalar>;
  static constexpr long rows_a_chunk = 128;

  /// Everything into one value.
  template <class Op, int N, class B> static typename Op::Total all(Cpu, const Loop<N>& loop, B bound) {
    using S = typename B::Scalar;
    typename Op::Total total = Op::identity;
    bool unit = true;
    bound.leaves([&](auto& l) { unit = unit && l.stride.e[N - 1] == 1; });
    const long n = loop.extents.e[N - 1];
    S* nowhere = nullptr;
    Loop<N> still = loop;
    still.stride = {};
    if (unit)
      for_each_row(still, 1, nowhere, bound, [&] { total = typename Op::Combine{}(total, row<Op, Access::unit>(bound, n)); });
    else
      for_each_row(still, 1, nowhere, bound, [&] { total = typename Op::Combine{}(total, row<Op, Access::strided>(bound, n)); });
    return total;
  }

  /// One axis (its stride of the target is 0) into the target.
  template <class Op, class R, int N, class B> static void axis(R* to, Cpu, Loop<N> loop, B bound, int which, Finish finish) {
    bool along = which == N - 1;  // one row of the axis after the other; else whole rows of the innermost
    if (!along) {
      bool axis_unit = true, inner_unit = true;
      bound.leaves([&](auto& l) {
        axis_unit = axis_unit && (l.stride.e[which] == 1 || l.stride.e[which] == 0);
        inner_unit = inner_unit && (l.stride.e[N - 1] == 1 || l.stride.e[N - 1] == 0);
      });
      along = axis_unit && !inner_unit;
    }
    rotate_axis(loop, bound, which, along || N == 1 ? N - 1 : N - 2);
    bool unit = true;
    bound.leaves([&](auto& l) { unit = unit && l.stride.e[N - 1] == 1; });
    if (along) {
      const long n = loop.extents.e[N - 1];
      if (unit) for_each_row(loop, 1, to, bound, [&] { *to = finish.template apply<R>(row<Op, Access::unit>(bound, n)); });
      else for_each_row(loop, 1, to, bound, [&] { *to = finish.template apply<R>(row<Op, Access::strided>(bound, n)); });
    } else if constexpr (N >= 2) {
      if (unit) for_each_row(loop, 2, to, bound, [&] { columns<Op, Access::unit>(to, loop, bound, finish); });
      else for_each_row(loop, 2, to, bound, [&] { columns<Op, Access::strided>(to, loop, bound, finish); });
    }
  }

  /// The first index at which `better(value, best)` holds against all before it, along a row. NaNs are passed over.
  template <class Better, class B>
  static void arg_row(const B bound, long n, long first, bool& any, typename B::Scalar& best, long& where) {
    for (long i = 0; i < n; ++i) {
      const auto v = bound.template at<Access::strided>(i);
      if (!any || Better{}(v, best) || (best != best && v == v)) {
        any = true;
        best = v;
        where = first + i;
      }
    }
  }
  /// The row-major index of the best value of all. The loop has no collapsed order other than row-major.
  template <class Better, int N, class B> static long arg_all(Cpu, const Loop<N>& loop, B bound) {
    bool any = false;
    typename B::Scalar best{};
    long where = 0, first = 0;
    const long n = loop.extents.e[N - 1];
    typename B::Scalar* nowhere = nullptr;
    Loop<N> still = loop;
    still.stride = {};
    for_each_row(still, 1, nowhere, bound, [&] {
      arg_row<Better>(bound, n, first, any, best, where);
      first += n;
    });
    return where;
  }
  template <class Better, int N, class B> static void arg_axis(long* to, Cpu, Loop<N> loop, B bound, int which) {
    rotate_axis(loop, bound, which, N - 1);
    for_each_row(loop, 1, to, bound, [&] {
      bool any = false;
      typename B::Scalar best{};
      arg_row<Better>(bound, loop.extents.e[N - 1], 0, any, best, *to);
    });
  }

 private:
  /// The first batch of a chain: of extremes without its NaNs, which would stay in their lanes.
  template <class Op, class V> static SKEIN_ALWAYS_INLINE V begin(const V& v) {
    if constexpr (Op::exact) return typename Op::Combine{}(V(Op::identity), v);
    else return v;
  }
  template <class Op, Access A, class B> static SKEIN_ALWAYS_INLINE typename Op::Total row(const B bound, long n) {
    using S = typename B::Scalar;
    using Total = typename Op::Total;
    constexpr typename Op::Combine combine{};
    Total total = Op::identity;
    if constexpr (batches<B>) {
      constexpr long W = batch_size<S>;
      alignas(64) S lanes[batch_size<S>];
      const auto add = [&](long k) {
        for (long j = 0; j < k; ++j) total = combine(total, static_cast<Total>(lanes[j]));
      };
      long i = 0;
      while (n - i >= 4 * W) {
        const long end = i + (n - i < rows_a_chunk * 4 * W ? (n - i) / (4 * W) * (4 * W) : rows_a_chunk * 4 * W);
        auto a = begin<Op>(bound.template batch<A>(i)), b = begin<Op>(bound.template batch<A>(i + W));
        auto c = begin<Op>(bound.template batch<A>(i + 2 * W)), d = begin<Op>(bound.template batch<A>(i + 3 * W));
        for (i += 4 * W; i < end; i += 4 * W) {
          a = combine(a, bound.template batch<A>(i));
          b = combine(b, bound.template batch<A>(i + W));
          c = combine(c, bound.template batch<A>(i + 2 * W));
          d = combine(d, bound.template batch<A>(i + 3 * W));
        }
        combine(combine(a, b), combine(c, d)).store_aligned(lanes);
        add(W);
      }
      if (n - i >= W) {
        auto a = begin<Op>(bound.template batch<A>(i));
        for (i += W; i + W <= n; i += W) a = combine(a, bound.template batch<A>(i));
        a.store_aligned(lanes);
        add(W);
      }
      if (i < n) {
        bound.template part<A>(i, n - i).store_aligned(lanes);
        add(n - i);
      }
    } else {
      for (long i = 0; i < n; ++i) total = combine(total, static_cast<Total>(bound.template at<A>(i)));
    }
    return total;
  }

  /// totals, of 4 batches from i on, with `count` rows of the axis N - 2.
  template <class Op, Access A, int N, class B, class Total>
  static SKEIN_ALWAYS_INLINE void four_batches(Total* totals, B& walk, long i, long count) {
    using S = typename B::Scalar;
    constexpr typename Op::Combine combine{};
    constexpr long W = batch_size<S>;
    auto a = begin<Op>(walk.template batch<A>(i)), b = begin<Op>(walk.template batch<A>(i + W));
    auto c = begin<Op>(walk.template batch<A>(i + 2 * W)), d = begin<Op>(walk.template batch<A>(i + 3 * W));
    walk.advance(N - 2, 1);
    for (long r = 1; r < count; ++r, walk.advance(N - 2, 1)) {
      a = combine(a, walk.template batch<A>(i));
      b = combine(b, walk.template batch<A>(i + W));
      c = combine(c, walk.template batch<A>(i + 2 * W));
      d = combine(d, walk.template batch<A>(i + 3 * W));
    }
    alignas(64) S lanes[4 * W];
    a.store_aligned(lanes);
    b.store_aligned(lanes + W);
    c.store_aligned(lanes + 2 * W);
    d.store_aligned(lanes + 3 * W);
    for (long j = 0; j < 4 * W; ++j) totals[j] = combine(totals[j], static_cast<Total>(lanes[j]));
  }
  /// The axis N - 2, for all values of the innermost axis at once.
  template <class Op, Access A, class R, int N, class B>
  static SKEIN_ALWAYS_INLINE void columns(R* to, const Loop<N>& loop, const B bound, Finish finish) {
    using S = typename B::Scalar;
    using Total = typename Op::Total;
    constexpr typename Op::Combine combine{};
    const long rows = loop.extents.e[N - 2], n = loop.extents.e[N - 1], step = loop.stride.e[N - 1];
    const auto strip = [&](long begin, long k, auto accumulate) {
      Total totals[4 * batch_size<S> > 64 ? 4 * batch_size<S> : 64];
      for (long j = 0; j < k; ++j) totals[j] = Op::identity;
      B b = bound;
      for (long r = 0; r < rows; r += rows_a_chunk) accumulate(b, r + rows_a_chunk < rows ? rows_a_chunk : rows - r, totals);
      for (long j = 0; j < k; ++j) to[(begin + j) * step] = finish.template apply<R>(totals[j]);
    };
    if constexpr (batches<B>) {
      constexpr long W = batch_size<S>;
      long i = 0;
      for (; i + 4 * W <= n; i += 4 * W)
        strip(i, 4 * W, [&](B& walk, long count, Total* totals) { four_batches<Op, A, N>(totals, walk, i, count); });
      for (; i < n; i += W) {
        const long k = n - i < W ? n - i : W;
        const auto read = [&](const B& walk) { return k == W ? walk.template batch<A>(i) : walk.template part<A>(i, k); };
        strip(i, k, [&](B& walk, long count, Total* totals) {
          auto a = begin<Op>(read(walk));
          walk.advance(N - 2, 1);
          for (long r = 1; r < count; ++r, walk.advance(N - 2, 1)) a = combine(a, read(walk));
          alignas(64) S lanes[batch_size<S>];
          a.store_aligned(lanes);
          for (long j = 0; j < k; ++j) totals[j] = combine(totals[j], static_cast<Total>(lanes[j]));
        });
      }
    } else {
      for (long i = 0; i < n; i += 64) {
        const long k = n - i < 64 ? n - i : 64;
        strip(i, k, [&](B& walk, long count, Total* totals) {
          for (long r = 0; r < count; ++r, walk.advance(N - 2, 1))
            for (long j = 0; j < k; ++j) totals[j] = combine(totals[j], static_cast<Total>(walk.template at<A>(i + j)));
        });
      }
    }
  }
};

}  // namespace skein::inline SKEIN_ABI::detail
