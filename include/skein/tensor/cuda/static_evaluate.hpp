// SPDX-License-Identifier: Apache-2.0
// Trees with static extents on a GPU: an assignment is one kernel, a thread a value, whose divisions are by constants; a sum is
// two, blocks of its terms and then, a warp an output, the blocks. The cut is a function of the shape and the batch alone and
// nothing is atomic: the same bits in every run.
#pragma once
#include "../../device/cuda/launch.hpp"
#include "../static_evaluate.hpp"

namespace skein::inline SKEIN_ABI {

namespace detail {

/// Value g of the samples of a batch, counted without gaps.
template <class To, class S, class Node> struct StaticAssign {
  S* to;
  Node node;
  SKEIN_HOST_DEVICE void operator()(long g) const {
    constexpr long stride = sample_pitch(To::extents), width = To::extents.last();
    const long sample = g / To::count, i = g - sample * To::count, row = i / width;
    const auto bound = row_of<To>(node, sample, row);
    to[sample * stride + i] = static_cast<S>(bound.template at<Access::unit>(i - row * width));
  }
};

/// Sums of a tree whose extents are To: how many, of how many terms each, and where a term and a sum are.
template <SumOver Over, class To> struct StaticTerms {
  static constexpr long width = To::extents.last(), rows = To::count / width;
  static constexpr long outputs = Over == SumOver::leading ? width : Over == SumOver::batch ? To::count : 1;
  static constexpr long a_sample = To::count / outputs;  ///< terms

  template <class Node> static SKEIN_HOST_DEVICE double term(const Node& node, long output, long k) {
    const long sample = k / a_sample, rest = k - sample * a_sample;  // rest: the row, nothing, or row and column
    const long i = Over == SumOver::leading ? rest * width + output : Over == SumOver::batch ? output : rest;
    const long row = i / width;
    const auto bound = node.template row<To>(sample, row);
    return static_cast<double>(bound.template at<Access::unit>(i - row * width));
  }
  static constexpr long place(long output) {
    if (Over == SumOver::batch) return output / width * row_pitch(width) + output % width;
    return output;
  }
};

/// Every `blocks`-th term of an output, from block b on; neighbouring threads are at neighbouring outputs.
template <class Terms, class Node> struct StaticPart {
  Node node;
  double* partial;  // (outputs, blocks)
  long terms, blocks;
  SKEIN_HOST_DEVICE void operator()(long g) const {
    const long b = g / Terms::outputs, output = g - b * Terms::outputs;
    double sum = 0;
    for (long k = b; k < terms; k += blocks) sum += Terms::term(node, output, k);
    partial[output * blocks + b] = sum;
  }
};
struct AddDoubles {
  constexpr double operator()(double a, double b) const { return a + b; }
};
/// One output's blocks, added to what is there.
template <class Terms, class S> struct StaticTotal {
  S* to;
  const double* partial;
  long blocks;
  template <class Lanes> SKEIN_HOST_DEVICE void operator()(long output, Lanes lanes) const {
    double sum = 0;
    for (long b = lanes.index; b < blocks; b += lanes.count) sum += partial[output * blocks + b];
    sum = lanes.reduce(sum, AddDoubles{});
    if (lanes.index == 0) to[Terms::place(output)] += static_cast<S>(sum);
  }
};

/// Value g of a table: the sum over all positions of its row's token, in their order. Every thread looks at every token.
template <class Layout, class S, class Tokens_, class Node> struct StaticTokenTotal {
  S* to;
  Tokens_ tokens;
  Node node;
  SKEIN_HOST_DEVICE void operator()(long g) const {
    constexpr long width = Layout::extents.last();
    const long row = g / width, i = g - row * width;
    double sum = 0;
    for (long s = 0; s < tokens.batch; ++s)
      for (long r = 0; r < Tokens_::positions; ++r)
        if (tokens.template at<Layout::extents.e[0]>(s, r) == row)
          sum += static_cast<double>(node.template row<ShapeOf<Node>>(s, r).template at<Access::unit>(i));
    to[row * Layout::pitch + i] += static_cast<S>(sum);
  }
};

template <> struct StaticEvaluator<Cuda> {
  template <class To, class S, class Node> static void assign(S* to, long batch, const Node& node) {
    cuda::for_each(batch * To::count, StaticAssign<To, S, Node>{to, node});
  }

  template <SumOver Over, class S, class Node> static void add_sum(S* to, long samples, const Node& node) {
    using Terms = StaticTerms<Over, ShapeOf<Node>>;
    const long terms = samples * Terms::a_sample;
    if (terms == 0) return;
    const long wanted = (terms + 15) / 16, most = most_blocks(Terms::outputs), blocks = wanted < most ? wanted : most;
    auto* partial = static_cast<double*>(cuda::workspace().get(bytes(Terms::outputs, blocks)));
    cuda::for_each(Terms::outputs * blocks, StaticPart<Terms, Node>{node, partial, terms, blocks});
    cuda::for_each_row(Terms::outputs, StaticTotal<Terms, S>{to, partial, blocks});
  }

  template <class Layout, class S, class Tokens_, class Node>
  static void add_by_token(S* to, const Tokens_& tokens, const Node& node) {
    cuda::for_each(Layout::count, StaticTokenTotal<Layout, S, Tokens_, Node>{to, tokens, node});
  }

  /// Makes room for sums of so many outputs.
  static void reserve(long outputs) { cuda::workspace().reserve(bytes(outputs, most_blocks(outputs))); }

 private:
  /// Not more threads than keep a large GPU busy.
  static constexpr long most_blocks(long outputs) {
    const long n = (1L << 17) / outputs;
    return n < 1 ? 1 : n > 1024 ? 1024 : n;
  }
  static constexpr std::size_t bytes(long outputs, long blocks) {
    return static_cast<std::size_t>(outputs * blocks) * sizeof(double);
  }
};

}  // namespace detail

}  // namespace skein::inline SKEIN_ABI
