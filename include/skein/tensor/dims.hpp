// SPDX-License-Identifier: Apache-2.0
// The extents and strides of a tensor: Dims<Rank>, an aggregate of longs (run-time values; the rank is in the type), with
// broadcasting by NumPy's rule and the texts of shape errors. Per-sample shapes of a network are core/shape.hpp's.
#pragma once
#include <concepts>
#include <cstddef>
#include <span>
#include <string>

#include "../core/error.hpp"
#include "../core/text.hpp"

namespace skein::inline SKEIN_ABI {

/// Rank numbers, the outermost first: the extents of a tensor, or its strides in values.
template <int Rank> struct Dims {
  static constexpr int rank = Rank;
  long e[Rank > 0 ? Rank : 1] = {};

  constexpr long& operator[](int i) { return e[i]; }
  constexpr const long& operator[](int i) const { return e[i]; }
  constexpr const long* begin() const { return e; }
  constexpr const long* end() const { return e + Rank; }
  /// The product: how many values a tensor of these extents has.
  constexpr long count() const {
    long n = 1;
    for (int i = 0; i < Rank; ++i) n *= e[i];
    return n;
  }
  friend constexpr bool operator==(const Dims& a, const Dims& b) {
    for (int i = 0; i < Rank; ++i)
      if (a.e[i] != b.e[i]) return false;
    return true;
  }
};

/// dims(5, 3) is a Dims<2>.
template <std::integral... E> constexpr Dims<static_cast<int>(sizeof...(E))> dims(E... e) { return {{static_cast<long>(e)...}}; }

/// The strides of a dense row-major tensor.
template <int Rank> constexpr Dims<Rank> row_major(const Dims<Rank>& extents) {
  Dims<Rank> s;
  long step = 1;
  for (int i = Rank - 1; i >= 0; --i) {
    s.e[i] = step;
    step *= extents.e[i];
  }
  return s;
}

namespace detail {
/// "(5, 3)"
SKEIN_NOINLINE inline std::string shape_text(const long* e, int rank) {
  return "(" + joined(std::span(e, static_cast<std::size_t>(rank))) + ")";
}
template <int Rank> std::string shape_text(const Dims<Rank>& d) { return shape_text(d.e, Rank); }

[[noreturn]] SKEIN_NOINLINE inline void throw_shapes(const char* operation, const long* a, int rank_a, const long* b, int rank_b,
                                                     const char* mend) {
  throw ShapeError(std::string(operation) + ": shapes " + shape_text(a, rank_a) + " and " + shape_text(b, rank_b) + " " + mend);
}
template <int A, int B>
[[noreturn]] void throw_shapes(const char* operation, const Dims<A>& a, const Dims<B>& b, const char* mend) {
  throw_shapes(operation, a.e, A, b.e, B, mend);
}

constexpr int max_rank(int a, int b) { return a > b ? a : b; }

/// NumPy's rule: aligned at the last extent; equal, or one of them is 1 or absent.
template <int A, int B> constexpr Dims<max_rank(A, B)> broadcast(const Dims<A>& a, const Dims<B>& b) {
  constexpr int R = max_rank(A, B);
  Dims<R> out;
  for (int i = 0; i < R; ++i) {
    const int ia = i - (R - A), ib = i - (R - B);
    const long x = ia >= 0 ? a.e[ia] : 1, y = ib >= 0 ? b.e[ib] : 1;
    if (x != y && x != 1 && y != 1)
      throw_shapes("elementwise operation", a, b, "do not broadcast: aligned at the last extent, they must be equal or 1");
    out.e[i] = x == 1 ? y : x;
  }
  return out;
}

/// An axis counted from the front, or from the back where it is negative.
inline int checked_axis(int axis, int rank, const char* operation) {
  const int a = axis < 0 ? axis + rank : axis;
  if (a < 0 || a >= rank)
    throw ArgumentError(
        text("{}: axis {} of a tensor of rank {}: axes go from {} to {}", operation, axis, rank, -rank, rank - 1));
  return a;
}
}  // namespace detail

}  // namespace skein::inline SKEIN_ABI
