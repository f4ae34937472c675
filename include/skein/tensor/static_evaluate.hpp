// SPDX-License-Identifier: Apache-2.0
// What trees with static extents are run by: static_assign() writes one into samples, add_sum() adds a sum of one to a
// parameter's gradient. StaticEvaluator<Device> is the point that a device specialises (here for Cpu; tensor/cuda/ adds the
// other). How far the operands go on without a step is known at compile time: the whole batch is one loop in vectors, or each
// sample is, or each row. Sums are added up column by column in a fixed order, up to eight vectors at a time in registers.
#pragma once
#include "evaluate.hpp"
#include "static_view.hpp"

SKEIN_BEGIN_UNROLLED
namespace skein::inline SKEIN_ABI {

namespace detail {

/// How a device runs trees with static extents. The primary template is not defined: a device without its header is an error
/// that names this.
template <class Device> struct StaticEvaluator;

/// The extents of a node as a type.
template <class Node> using ShapeOf =
    typename MakeShape<Node::extents.rank, Node::extents.e[0], Node::extents.e[1], Node::extents.e[2], Node::extents.e[3]>::type;

#if SKEIN_WITH_XSIMD && !defined(XSIMD_NO_SUPPORTED_ARCHITECTURE)
/// to += the first Vectors sums, of which the last has `left` lanes where it is a part.
template <int Vectors, bool Part, class S, std::size_t All>
SKEIN_ALWAYS_INLINE void add_to(S* to, const Batch<S> (&sum)[All], long left) {
#pragma GCC unroll 16
  for (int j = 0; j < Vectors; ++j, to += batch_size<S>) {
    if (Part && j == Vectors - 1) store_part<S>(to, load_part(to, left) + sum[j], left);
    else (Batch<S>::load_unaligned(to) + sum[j]).store_unaligned(to);
  }
}
/// Columns begin .. end of to += row `row` of every sample (Rows = 1), or all Rows rows of every sample; so many vectors at a
/// time, of which the last has `left` lanes where it is a part.
template <class To, long Rows, int Vectors, bool Part, class Node, class S>
SKEIN_NOINLINE void sum_columns(S* to, const Node& from, long samples, long row, long begin, long end, long left) {
  using V = Batch<S>;
  constexpr long W = batch_size<S>;
  constexpr int chains = Vectors >= 4 ? 1 : Vectors >= 2 ? 2 : 4;
  const Node node = from;  // in registers
  for (long column = begin; column < end; column += Vectors * W) {
    V sum[chains * Vectors];
#pragma GCC unroll 16
    for (int j = 0; j < chains * Vectors; ++j) sum[j] = V(S(0));
    const auto add = [&](int chain, long sample, long r) __attribute__((always_inline)) {
      const auto bound = node.template row<To>(sample, r);
#pragma GCC unroll 16
      for (int j = 0; j < Vectors; ++j) {
        V& to_sum = sum[chain * Vectors + j];
        if (Part && j == Vectors - 1) to_sum += as_batch<S>(bound.template part<Access::unit>(column + j * W, left));
        else to_sum += as_batch<S>(bound.template batch<Access::unit>(column + j * W));
      }
    };
    if constexpr (Rows == 1) {
      long s = 0;
      for (; s + chains <= samples; s += chains)
#pragma GCC unroll 4
        for (int c = 0; c < chains; ++c) add(c, s + c, row);
      for (; s < samples; ++s) add(0, s, row);
    } else {
      constexpr long whole = Rows / chains * chains;
      for (long s = 0; s < samples; ++s) {
        for (long r = 0; r < whole; r += chains)
#pragma GCC unroll 4
          for (int c = 0; c < chains; ++c) add(c, s, r + c);
        for (long r = whole; r < Rows; ++r) add(0, s, r);
      }
    }
#pragma GCC unroll 16
    for (int j = Vectors; j < chains * Vectors; ++j) sum[j % Vectors] += sum[j];
    add_to<Vectors, Part>(to + column, sum, left);
  }
}
#endif

template <> struct StaticEvaluator<Cpu> {
  /// to (batch, To) = node, sample by sample or at once.
  template <class To, class S, class Node> static void assign(S* to, long batch, const Node& node) {
    constexpr Reach reach = reach_of_node<Node>(To::extents);
    constexpr long stride = sample_pitch(To::extents), width = To::extents.last(), rows = To::count / width;
    if constexpr (reach == Reach::batch) {
      run<true>(to, row_of<To>(node, 0, 0), batch * stride);
    } else if constexpr (reach != Reach::row || rows == 1) {
      constexpr long n = reach == Reach::padded ? stride : To::count;
      for (long s = 0; s < batch; ++s) run(to + s * stride, row_of<To>(node, s, 0), n);
    } else {
      for (long s = 0; s < batch; ++s)
        for (long r = 0; r < rows; ++r) run(to + s * stride + r * width, row_of<To>(node, s, r), width);
    }
  }

  /// to (ParameterLayout of the sum) += the sum, over so many samples.
  template <SumOver Over, class S, class Node> static void add_sum(S* to, long samples, const Node& node) {
    using To = ShapeOf<Node>;
    constexpr Reach reach = Node::reach(To::extents);
    constexpr long width = To::extents.last(), rows = To::count / width;
    if constexpr (Over == SumOver::batch) {
      for (long r = 0; r < rows; ++r) add_columns<To, 1>(to + r * row_pitch(width), node, samples, r);
    } else if constexpr (Over == SumOver::leading && width > 1) {
      add_columns<To, rows>(to, node, samples, 0);
    } else {
      S total = 0;
      if constexpr (reach == Reach::batch && sample_pitch(To::extents) == To::count)
        total = sum_of_row<S>(node.template row<To>(0, 0), samples * To::count);
      else if constexpr (reach != Reach::row || rows == 1)
        for (long s = 0; s < samples; ++s) total += sum_of_row<S>(node.template row<To>(s, 0), To::count);
      else
        for (long s = 0; s < samples; ++s)
          for (long r = 0; r < rows; ++r) total += sum_of_row<S>(node.template row<To>(s, r), width);
      *to += total;
    }
  }

  /// to (Layout) row by row, in the order of samples and positions.
  template <class Layout, class S, class Tokens_, class Node>
  static void add_by_token(S* to, const Tokens_& tokens, const Node& node) {
    using To = ShapeOf<Node>;
    for (long s = 0; s < tokens.batch; ++s)
      for (long r = 0; r < Tokens_::positions; ++r) {
        S* row = to + tokens.template at<Layout::extents.e[0]>(s, r) * Layout::pitch;
        const auto bound = node.template row<To>(s, r);
        for (long i = 0; i < To::extents.last(); ++i) row[i] += static_cast<S>(bound.template at<Access::unit>(i));
      }
  }

 private:
  /// One run of values; what is shorter than a vector is left to the compiler, but where the length is the batch's: a sample's
  /// values are then those that it has in a large batch, to the bit.
  template <bool IsBatch = false, class S, class B> static SKEIN_ALWAYS_INLINE void run(S* to, const B& bound, long n) {
    if constexpr (std::is_same_v<typename B::Lane, S> && is_batched<S>) {
      constexpr long W = batch_size<S>;
      if (IsBatch || n >= W) {
        long i = 0;
#pragma GCC unroll 2
        for (; i + W <= n; i += W) as_batch<S>(bound.template batch<Access::unit>(i)).store_unaligned(to + i);
        if (i < n) store_part<S>(to + i, as_batch<S>(bound.template part<Access::unit>(i, n - i)), n - i);
        return;
      }
    }
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#pragma GCC ivdep
#endif
    for (long i = 0; i < n; ++i) to[i] = static_cast<S>(bound.template at<Access::unit>(i));
  }

  template <class To, long Rows, class S, class Node> static void add_columns(S* to, const Node& node, long samples, long row) {
    constexpr long width = To::extents.last();
    using Bound = decltype(node.template row<To>(0, 0));
    if constexpr (std::is_same_v<typename Bound::Lane, S> && is_batched<S>) {
      constexpr long W = batch_size<S>, panel = 8 * W, whole = width / panel * panel, left = width - whole;
      if constexpr (whole > 0) sum_columns<To, Rows, 8, false>(to, node, samples, row, 0, whole, 0);
      if constexpr (left > 0) {
        constexpr int vectors = static_cast<int>((left + W - 1) / W);
        sum_columns<To, Rows, vectors, left % W != 0>(to, node, samples, row, whole, width, left % W);
      }
    } else {
      for (long s = 0; s < samples; ++s)
        for (long r = row; r < row + Rows; ++r) {
          const auto bound = node.template row<To>(s, r);
          for (long i = 0; i < width; ++i) to[i] += static_cast<S>(bound.template at<Access::unit>(i));
        }
    }
  }

  /// Four sums that go side by side, in vectors.
  template <class S, class B> static S sum_of_row(const B& bound, long n) {
    S total = 0;
    long i = 0;
    if constexpr (std::is_same_v<typename B::Lane, S> && is_batched<S>) {
      constexpr long W = batch_size<S>;
      if (n >= W) {
        Batch<S> sum[4] = {Batch<S>(S(0)), Batch<S>(S(0)), Batch<S>(S(0)), Batch<S>(S(0))};
        for (; i + 4 * W <= n; i += 4 * W)
#pragma GCC unroll 4
          for (int c = 0; c < 4; ++c) sum[c] += as_batch<S>(bound.template batch<Access::unit>(i + c * W));
        for (; i + W <= n; i += W) sum[0] += as_batch<S>(bound.template batch<Access::unit>(i));
        alignas(64) S lanes[batch_size<S>];
        ((sum[0] + sum[1]) + (sum[2] + sum[3])).store_aligned(lanes);
        for (const S lane : lanes) total += lane;
      }
    }
    for (; i < n; ++i) total += static_cast<S>(bound.template at<Access::unit>(i));
    return total;
  }
};

/// Does an expression fit samples of extents To?
template <class To, class Node>
inline constexpr bool fits_samples = broadcast_extents(static_extents<Node>(), To::extents) == To::extents;

}  // namespace detail

/// to (batch, To), laid out as samples, = the expression, which fits it.
template <class To, class Device, class S, class E> void static_assign(S* to, long batch, const E& e) {
  detail::StaticEvaluator<Device>::template assign<To>(to, batch, e);
}

/// to (Layout, a parameter's) += the sum over so many samples, which fits it.
template <class Layout, class Device, class S, class Sum> void static_add_sum(S* to, long samples, const Sum& sum) {
  if constexpr (!Sum::sound) {
    return;
  } else if constexpr (requires { sum.tokens; }) {
    detail::StaticEvaluator<Device>::template add_by_token<Layout>(to, sum.tokens, sum.summed);
  } else {
    const long n = decltype(sum.summed)::batched ? sum.summed.samples() : samples;
    detail::StaticEvaluator<Device>::template add_sum<Sum::over>(to, n, sum.summed);
  }
}

}  // namespace skein::inline SKEIN_ABI
SKEIN_END_UNROLLED
