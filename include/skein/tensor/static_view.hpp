// SPDX-License-Identifier: Apache-2.0
// Views whose extents are in their types, for layers: the samples of a batch (only their number is known at run time), and the
// parameters of a layer. The operators and functions of tensors make trees of them, which are broadcast, checked and laid out at
// compile time; static_evaluate.hpp runs them. A tree holds pointers and function objects alone, its types are made of integers:
// a kernel takes it by value.
//
//     StaticView<const float, float, Cpu, SampleLayout<28, 28, 3>> x;       // (batch, 28, 28, 3), dense
//     StaticView<const float, float, Cpu, ParameterLayout<3>> w;            // (3), its rows padded as files have them
//     static_assign(y, x * w + 1);
#pragma once
#include <string>
#include <type_traits>
#include <utility>

#include "../core/error.hpp"
#include "../core/half.hpp"
#include "../core/shape.hpp"
#include "expression.hpp"

namespace skein::inline SKEIN_ABI {

namespace detail {

/// Where value (row, i) of a target of shape To is read in an array of extents Layout::extents whose rows are Layout::pitch
/// apart: the row's offset. Rows count through all extents but the last. (The extents are copied: a kernel cannot refer to a
/// static member of the host.)
template <class Layout, class To> constexpr long broadcast_row(long row) {
  constexpr Extents from = Layout::extents, to = To::extents;
  long offset = 0, step = Layout::pitch;
  for (int i = 2; i <= to.rank; ++i) {
    const int extent = i <= from.rank ? from.e[from.rank - i] : 1, whole = to.e[to.rank - i];
    if (extent != 1) offset += row % whole * step;
    step *= extent;
    row /= whole;
  }
  return offset;
}

/// Extents without what is 1 in front: (1, 1, 5) is (5).
constexpr Extents trimmed(Extents e) {
  while (e.rank > 1 && e.e[0] == 1) {
    for (int i = 1; i < e.rank; ++i) e.e[i - 1] = e.e[i];
    e.e[--e.rank] = 0;
  }
  return e;
}

}  // namespace detail

/// Samples of a batch, one behind the other as an executor has them: flat ones in padded rows, others dense.
template <int... E> struct SampleLayout {
  using shape = Shape<E...>;
  static constexpr bool batched = true;
  static constexpr Extents extents = shape::extents;
  static constexpr long count = shape::count, sample_stride = sample_pitch(extents);
  static constexpr long pitch = extents.flat() ? sample_stride : extents.last();  ///< from row to row
};
/// One array for all samples: each row padded to row_pitch of its length.
template <int... E> struct ParameterLayout {
  using shape = Shape<E...>;
  static constexpr bool batched = false;
  static constexpr Extents extents = shape::extents;
  static constexpr long count = shape::count, sample_stride = 0;
  static constexpr long pitch = row_pitch(extents.last());
};

namespace detail {

/// How far a leaf goes on without a step beside samples of extents `to`, the cheapest first: through the whole batch, gaps
/// included; through a sample and the gap behind it; through a sample; through a row.
enum class Reach { batch, padded, sample, row };

template <class Layout> constexpr bool is_one_value = !Layout::batched && Layout::count == 1;
template <class Layout> constexpr Reach reach_of(const Extents& to) {
  if (is_one_value<Layout>) return Reach::batch;
  if (!(trimmed(Layout::extents) == trimmed(to))) return Reach::row;
  if (Layout::batched && Layout::sample_stride == sample_pitch(to)) return Reach::batch;
  if (to.flat() && Layout::pitch == sample_pitch(to)) return Reach::padded;
  return Layout::pitch == Layout::extents.last() || trimmed(to).flat() ? Reach::sample : Reach::row;
}
constexpr Reach farther(Reach a, Reach b) { return a > b ? a : b; }

/// Values of a row of a 16-bit array, computed with as Scalar.
template <class Element, class Scalar_> struct WidenedRow {
  using Scalar = Scalar_;
  using Lane = void;
  static constexpr int widest = sizeof(Element);
  const Element* data;
  template <Access> constexpr Scalar at(long i) const { return static_cast<Scalar>(data[i]); }
};

}  // namespace detail

/// A node of a tree with static extents; views are its leaves.
template <class T> concept StaticExpression = requires { typename std::remove_cvref_t<T>::static_expression; };

/// What all nodes are: expressions for the operators of tensors, whose functions for run-time extents say what to use instead.
struct StaticNode {
  using skein_expression = void;
  using static_expression = void;
  static constexpr bool sound = true;
  template <int Never = 0> constexpr Dims<0> shape() const {
    static_assert(
        Never != 0,
        "a layer's expressions have no shape at run time; they are summed by sum_leading(e), sum_batch(e) or sum_all(e)");
    return {};
  }
};

/// An array of a device whose extents are known: Element in memory (const where it is read only), Scalar in calculations.
template <class Element_, class Scalar_, class Device_, class Layout_> struct StaticView : StaticNode {
  using Element = std::remove_const_t<Element_>;
  using Scalar = Scalar_;
  using Device = Device_;
  using Layout = Layout_;
  static constexpr Extents extents = Layout::extents;
  static constexpr bool batched = Layout::batched;
  static constexpr int rank = extents.rank;

  Element_* data = nullptr;
  long batch = 1;  ///< samples; 1 for what is no sample

  constexpr StaticView() = default;
  constexpr explicit StaticView(Element_* first, long samples = 1) : data(first), batch(samples) {}

  constexpr long samples() const { return batched ? batch : -1; }
  /// How far this leaf goes on beside a target of these extents.
  static constexpr detail::Reach reach(const Extents& to) { return detail::reach_of<Layout>(to); }
  /// The leaf at a row of a sample, for a target of shape To, as bound.hpp has it.
  template <class To> SKEIN_ALWAYS_INLINE constexpr auto row(long sample, long r) const {
    const Element* p = data + sample * Layout::sample_stride;
    if constexpr (detail::is_one_value<Layout>) p += 0;
    else if constexpr (detail::trimmed(extents) == detail::trimmed(To::extents)) p += r * Layout::pitch;
    else p += detail::broadcast_row<Layout, To>(r);
    if constexpr (detail::is_one_value<Layout> || (extents.last() == 1 && To::extents.last() != 1))
      return detail::BoundConstant<Scalar, 1>{static_cast<Scalar>(*p)};
    else if constexpr (std::is_same_v<Element, Scalar>) return detail::BoundView<Scalar, 1>{p, {{1}}};
    else return detail::WidenedRow<Element, Scalar>{p};
  }
};

namespace detail {

template <class A> constexpr bool is_batched_node() {
  if constexpr (StaticExpression<A>) return A::batched;
  else return false;
}
template <class A> constexpr long samples_of(const A& a) {
  if constexpr (StaticExpression<A>) return a.samples();
  else return -1;
}
template <class A> constexpr Reach reach_of_node(const Extents& to) {
  if constexpr (StaticExpression<A>) return A::reach(to);
  else return Reach::batch;
}
template <class To, class A> SKEIN_ALWAYS_INLINE constexpr auto row_of(const A& a, long sample, long r) {
  if constexpr (StaticExpression<A>) return a.template row<To>(sample, r);
  else return a.bind(Dims<1>{});
}
/// f of its arguments, broadcast against each other.
template <class F, int... I, class... Args> struct StaticMapNode<F, std::integer_sequence<int, I...>, Args...>
    : StaticNode, Slot<I, Args>... {
  using Scalar = std::remove_cvref_t<decltype(std::declval<const F&>()(std::declval<typename Args::Scalar>()...))>;
  using Device = typename CommonDevice<typename Args::Device...>::type;
  static constexpr bool sound = (Args::sound && ...);
  static constexpr Extents extents = broadcast_all<Args...>();
  static constexpr bool batched = (is_batched_node<Args>() || ...);
  static constexpr int rank = extents.rank;
  F f;

  constexpr explicit StaticMapNode(F function, const Args&... args) : Slot<I, Args>{args}..., f(function) {}
  constexpr long samples() const {
    long n = -1;
    ((n = n >= 0 ? n : samples_of(static_cast<const Slot<I, Args>&>(*this).value)), ...);
    return n;
  }
  static constexpr Reach reach(const Extents& to) {
    Reach r = Reach::batch;
    ((r = farther(r, reach_of_node<Args>(to))), ...);
    return r;
  }
  template <class To> SKEIN_ALWAYS_INLINE constexpr auto row(long sample, long r) const {
    return bound(row_of<To>(static_cast<const Slot<I, Args>&>(*this).value, sample, r)...);
  }

 private:
  template <class... Bound> SKEIN_ALWAYS_INLINE constexpr auto bound(const Bound&... args) const {
    return BoundMap<F, std::integer_sequence<int, I...>, Bound...>(f, args...);
  }
};
/// What an operand becomes in a tree.
template <class E> using NodeOfLeaf = std::remove_cvref_t<decltype(leaf(std::declval<const E&>()))>;

/// Over what a sum of a tree runs: all but the last extent, the samples, or everything.
enum class SumOver { leading, batch, all };

/// A sum that has not been made: what is added to a gradient.
template <SumOver Over, class E> struct StaticSum {
  using static_sum = void;
  static constexpr bool sound = E::sound;
  static constexpr SumOver over = Over;
  using Scalar = typename E::Scalar;
  using Device = typename E::Device;
  static constexpr Extents extents = Over == SumOver::batch     ? E::extents
                                     : Over == SumOver::leading ? Extents{1, {E::extents.last()}}
                                                                : Extents{1, {1}};
  static constexpr bool fits(const Extents& parameter) { return parameter == extents; }
  E summed;
};

/// A sum by token: the row of each position goes to the row of its token.
template <class E, class Tokens_> struct StaticTokenSum {
  using static_sum = void;
  static constexpr bool sound = E::sound;
  using Scalar = typename E::Scalar;
  using Device = typename E::Device;
  static constexpr bool fits(const Extents& parameter) {
    return parameter.rank == 2 && parameter.last() == E::extents.last() &&
           E::extents.count() / E::extents.last() == Tokens_::positions;
  }
  E summed;
  Tokens_ tokens;
};

[[noreturn]] SKEIN_NOINLINE inline void throw_token(long token, long sample, long position, long rows) {
  throw ArgumentError(
      text("position {} of sample {} (of this worker's block) is the token {}; the table has {} rows, so tokens are 0 to {}",
           position, sample, token, rows, rows - 1));
}

}  // namespace detail

/// The tokens of a batch, (batch, Positions), dense. One beyond the table is an ArgumentError on the Cpu; a device's have been
/// looked at on the host, and are kept within. In an expression they are whole numbers (Positions, 1), beside rows of any width:
/// where(f.tokens() != 0, rows_of(table, f.tokens()), 0).
template <class Device_, long Positions> struct TokenView
    : StaticView<const std::int32_t, std::int32_t, Device_, SampleLayout<static_cast<int>(Positions), 1>> {
  using TokenView::StaticView::StaticView;
  static constexpr long positions = Positions;

  template <long Rows> SKEIN_ALWAYS_INLINE constexpr long at(long sample, long position) const {
    const long token = this->data[sample * Positions + position];
    const bool known = token >= 0 && token < Rows;
    if constexpr (std::is_same_v<Device_, Cpu>)
      if (!known) detail::throw_token(token, sample, position, Rows);
    return known ? token : 0;
  }
};

namespace detail {
/// Rows of a table, one a position.
template <class Table, class Tokens_> struct StaticRows : StaticNode {
  using Scalar = typename Table::Scalar;
  using Device = typename Table::Device;
  static constexpr Extents extents{2, {static_cast<int>(Tokens_::positions), Table::extents.last()}};
  static constexpr bool batched = true;
  static constexpr int rank = 2;
  Table table;
  Tokens_ tokens;
  constexpr long samples() const { return tokens.batch; }
  static constexpr Reach reach(const Extents&) { return Reach::row; }
  template <class To> SKEIN_ALWAYS_INLINE constexpr auto row(long sample, long r) const {
    const long token = tokens.template at<Table::extents.e[0]>(sample, r);
    return BoundView<Scalar, 1>{table.data + token * Table::Layout::pitch, {{1}}};
  }
};
}  // namespace detail

/// (positions, width): the row of a table of parameters (rows, width) that each token names.
template <class Scalar, class Device, class Layout, long Positions>
constexpr auto rows_of(const StaticView<const Scalar, Scalar, Device, Layout>& table,
                       const TokenView<Device, Positions>& tokens) {
  static_assert(Layout::extents.rank == 2, "rows_of takes a table of parameters (rows, width), and tokens");
  using View = StaticView<const Scalar, Scalar, Device, Layout>;
  return detail::StaticRows<View, TokenView<Device, Positions>>{{}, table, tokens};
}
/// The sums of e (positions, width) over all positions of a token, in the order of samples and positions: (rows, width).
template <StaticExpression E, class Device, long Positions>
constexpr auto sum_by_token(const E& e, const TokenView<Device, Positions>& tokens) {
  return detail::StaticTokenSum<E, TokenView<Device, Positions>>{e, tokens};
}

/// The sums over all extents but the last, and over the batch: (last extent). What the gradient of a factor a feature, or a bias
/// a channel, is made of.
template <StaticExpression E> constexpr auto sum_leading(const E& e) { return detail::StaticSum<detail::SumOver::leading, E>{e}; }
/// The sums over the batch: the extents of a sample.
template <StaticExpression E> constexpr auto sum_batch(const E& e) { return detail::StaticSum<detail::SumOver::batch, E>{e}; }
/// The sum of all values, (1).
template <StaticExpression E> constexpr auto sum_all(const E& e) { return detail::StaticSum<detail::SumOver::all, E>{e}; }

}  // namespace skein::inline SKEIN_ABI
