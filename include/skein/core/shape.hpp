// SPDX-License-Identifier: Apache-2.0
// Extents (a value), Shape<...> (the type of a per-sample shape), padding of rows, and type lists. Plain integers only, so
// that both can be template arguments of a kernel.
#pragma once
#include <cstddef>
#include <limits>
#include <type_traits>
#include <utility>

#include "config.hpp"

namespace skein::inline SKEIN_ABI {

/// The extents of one sample (or one parameter), row-major, at most four. Images are (height, width, channels).
struct Extents {
  int rank = 0;
  int e[4] = {0, 0, 0, 0};
  bool tokens = false;  ///< the values are 32-bit integers to be looked up, not numbers

  /// Their product; where that is no size of anything (2^61 or more), 2^61.
  constexpr long count() const {
    constexpr long most = std::numeric_limits<long>::max() / 4;  // and no pitch, nor bytes of a value, overflows
    long n = 1;
    for (int i = 0; i < rank; ++i) n = e[i] > 0 && n > most / e[i] ? most : n * e[i];
    return n;
  }
  /// Are there one to four, all above 0.
  constexpr bool positive() const {
    bool all = rank >= 1 && rank <= 4;
    for (int i = 0; all && i < rank; ++i) all = e[i] > 0;
    return all;
  }
  constexpr int operator[](int i) const { return e[i]; }
  constexpr const int* begin() const { return e; }
  constexpr const int* end() const { return e + rank; }
  constexpr int last() const { return rank > 0 ? e[rank - 1] : 1; }
  constexpr bool flat() const { return rank == 1; }
  constexpr bool image() const { return rank == 3; }
  constexpr int height() const { return e[0]; }
  constexpr int width() const { return e[1]; }
  constexpr int channels() const { return last(); }
  friend constexpr bool operator==(const Extents&, const Extents&) = default;
};

/// A per-sample shape as a type: Shape<28, 28, 1> is an image, Shape<10> is flat.
template <int... Extent> struct Shape {
  static_assert(sizeof...(Extent) >= 1 && sizeof...(Extent) <= 4, "a Shape has one to four extents");
  static_assert(((Extent > 0) && ...), "every extent of a Shape must be positive");
  static constexpr int rank = sizeof...(Extent);
  static constexpr long count = (1L * ... * Extent);
  static constexpr Extents extents{rank, {Extent...}};
};

/// A sample of T tokens: 32-bit integers, which a layer such as an embedding looks up.
template <int T> struct Tokens : Shape<T> { static constexpr Extents extents{1, {T}, true}; };
/// Is this input Tokens<T>.
template <class Input> inline constexpr bool is_tokens = Input::extents.tokens;

/// Value to type. Integers rather than a class value: nvcc 13.0 rejects the latter as a kernel's template argument.
template <int Rank, int A, int B, int C, int D> struct MakeShape;
template <int A, int B, int C, int D> struct MakeShape<1, A, B, C, D> { using type = Shape<A>; };
template <int A, int B, int C, int D> struct MakeShape<2, A, B, C, D> { using type = Shape<A, B>; };
template <int A, int B, int C, int D> struct MakeShape<3, A, B, C, D> { using type = Shape<A, B, C>; };
template <int A, int B, int C, int D> struct MakeShape<4, A, B, C, D> { using type = Shape<A, B, C, D>; };

/// MakeShape for an edge that may be of tokens.
template <bool OfTokens, int Rank, int A, int B, int C, int D> struct MakeEdge : MakeShape<Rank, A, B, C, D> {};
template <int A, int B, int C, int D> struct MakeEdge<true, 1, A, B, C, D> { using type = Tokens<A>; };

/// n, rounded up to 16: scalars whose arrays begin at multiples of a cache line, whether they are of 4 or 8 bytes.
constexpr long whole_line(long n) { return (n + 15) / 16 * 16; }

/// The length of a stored row of n values: n up to 4, 8 up to 8, else a multiple of 16; and never a multiple of 512, which would
/// alias in the first-level cache (an sgemm over rows of 512 floats runs at 60 % of one over rows of 528). A function of n alone,
/// never of the instruction set or the device: else ranks and files would disagree.
constexpr long row_pitch(long n) {
  if (n <= 4) return n;
  if (n <= 8) return 8;
  const long rounded = whole_line(n);
  return rounded % 512 == 0 ? rounded + 16 : rounded;
}

/// Scalars from one sample of a batch to the next. Flat samples are padded rows; images are dense, as oneDNN and cuDNN want.
constexpr long sample_pitch(const Extents& sample) { return sample.flat() ? row_pitch(sample.count()) : sample.count(); }

/// Scalars that a parameter occupies: its rows (all but the last extent), each padded to row_pitch.
constexpr long stored_count(const Extents& parameter) {
  return parameter.rank == 0 || parameter.last() == 0 ? 0 : parameter.count() / parameter.last() * row_pitch(parameter.last());
}

/// What a and b are broadcast to, aligned at the last extent; rank -1 where neither is 1 and they differ.
constexpr Extents broadcast_extents(const Extents& a, const Extents& b) {
  const int rank = a.rank > b.rank ? a.rank : b.rank;
  Extents out{rank, {}};
  for (int i = 1; i <= rank; ++i) {
    const int x = i <= a.rank ? a.e[a.rank - i] : 1, y = i <= b.rank ? b.e[b.rank - i] : 1;
    if (x != y && x != 1 && y != 1) return {-1, {}};
    out.e[rank - i] = x == 1 ? y : x;
  }
  return out;
}

/// A list of types, and its I-th member in constant depth.
template <class... Ts> struct List { static constexpr int size = sizeof...(Ts); };

namespace detail {
template <std::size_t I, class T> struct Indexed { using type = T; };
template <class Is, class... Ts> struct IndexedList;
template <std::size_t... I, class... Ts> struct IndexedList<std::index_sequence<I...>, Ts...> : Indexed<I, Ts>... {};
template <std::size_t I, class T> Indexed<I, T> pick(Indexed<I, T>*);
template <class L> struct IndexedOf;
template <class... Ts> struct IndexedOf<List<Ts...>> {
  using type = IndexedList<std::make_index_sequence<sizeof...(Ts)>, Ts...>;
};
}  // namespace detail

template <class L, std::size_t I> using TypeAt =
    typename decltype(detail::pick<I>(static_cast<typename detail::IndexedOf<L>::type*>(nullptr)))::type;

}  // namespace skein::inline SKEIN_ABI
