// SPDX-License-Identifier: Apache-2.0
// Normalisation of columns in vectors: the matrix is read as one array whose coefficients repeat after column_period, so that 6
// channels fill vectors as well as 64 do; sums are taken in registers over blocks of rows, about a first guess of the mean, and
// added up in double. Without xsimd it is the reference.
//
//     m the matrix x (rows, width); y, dx, dy likewise; i an element of the array, j its place in the period, c its column, r a
//     row; g an element of dy, d one of x - mean; V a vector of Scalar
#pragma once
#include "../reference/normalization.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

/// Scalars of a workspace, of any type, that n doubles of a call take: none where they stand on the stack.
constexpr long scalars_of_doubles(long n) { return n <= 16384 ? 0 : 2 * n; }

/// N doubles while a call lasts: on the stack, and over 128 KiB in the workspace, since a worker's stack holds but a few MiB.
template <long N> class DoublesOfCall {
 public:
  /// room: scalars_of_doubles(N) of the workspace, where a double may lie; the caller keeps it.
  template <class Scalar> explicit DoublesOfCall(Scalar* room) : many_(reinterpret_cast<double*>(room)) {}
  double* data() { return on_stack ? few_ : many_; }

 private:
  static constexpr bool on_stack = scalars_of_doubles(N) == 0;
  double few_[on_stack ? N : 1];
  double* many_;
};

}  // namespace skein::inline SKEIN_ABI::ops::cpu

#if SKEIN_WITH_XSIMD
#include <algorithm>

#include "vector.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

namespace detail {
/// For each vector of columns, over blocks of rows: term(i, j, first, second) adds to two vectors for element i of the array,
/// place j of the period; the sums come out in double, per column. Elements behind the last whole period: rest(i, c).
template <class Scalar, class Term, class Rest>
SKEIN_ALWAYS_INLINE void column_sums(long rows, long width, double* first_sum, double* second_sum, Term term, Rest rest) {
  using V = xsimd::batch<Scalar>;
  constexpr long lanes = static_cast<long>(V::size);
  const long period = column_period(width), total = rows * width, whole = total / period * period;
  const long block = std::clamp(8192 / period, 8L, 64L) * period;
  alignas(64) Scalar first_lanes[V::size], second_lanes[V::size];
  for (long begin = 0; begin < whole; begin += block) {
    const long end = std::min(begin + block, whole);
    long column = 0;
    for (long j = 0; j < period; j += lanes) {
      V first0(Scalar(0)), second0(Scalar(0)), first1(Scalar(0)), second1(Scalar(0));
      long i = begin + j;
      for (; i + period < end; i += 2 * period) {
        term(i, j, first0, second0);
        term(i + period, j, first1, second1);
      }
      if (i < end) term(i, j, first0, second0);
      (first0 + first1).store_aligned(first_lanes);
      (second0 + second1).store_aligned(second_lanes);
      for (long l = 0; l < lanes; ++l) {
        first_sum[column] += static_cast<double>(first_lanes[l]);
        second_sum[column] += static_cast<double>(second_lanes[l]);
        if (++column == width) column = 0;
      }
    }
  }
  for (long i = whole; i < total; ++i) rest(i, i % width);
}

/// body(i, j) for each vector of the array, j its place in the period; rest(i, c) for the elements behind.
template <class Scalar, class Body, class Rest> SKEIN_ALWAYS_INLINE void column_map(long rows, long width, Body body, Rest rest) {
  constexpr long lanes = static_cast<long>(xsimd::batch<Scalar>::size);
  const long period = column_period(width), total = rows * width, whole = total / period * period;
  for (long begin = 0; begin < whole; begin += period)
    for (long j = 0; j < period; j += lanes) body(begin + j, j);
  for (long i = whole; i < total; ++i) rest(i, (i - whole) % width);
}
}  // namespace detail

/// Sums of x and x^2 over rows, per column, in double, of rows that come a part at a time: begin(), add() each part, finish().
/// guess: column_period(width) scalars of scratch, about which is summed.
template <class Scalar> struct MomentsOfColumns {
  double *sum, *square;
  Scalar* guess;
  long width, rows = 0;

  /// The guess is the mean of the first part's first rows.
  void begin(const Columns<Scalar>& first) {
    const long period = column_period(width), sample = std::min(first.rows, 8L);
    for (long c = 0; c < width; ++c) {
      double mean = 0;
      for (long r = 0; r < sample; ++r) mean += static_cast<double>(first.x[r * width + c]);
      guess[c] = sample > 0 ? static_cast<Scalar>(mean / static_cast<double>(sample)) : Scalar(0);
      sum[c] = square[c] = 0;
    }
    for (long i = width; i < period; ++i) guess[i] = guess[i - width];
  }
  void add(const Columns<Scalar>& part) {
    using V = xsimd::batch<Scalar>;
    const Scalar* x = part.x;
    rows += part.rows;
    detail::column_sums<Scalar>(
        part.rows, width, sum, square,
        [=, this](long i, long j, V& first, V& second) {
          const V d = V::load_unaligned(x + i) - V::load_unaligned(guess + j);
          first += d;
          second = fused(d, d, second);
        },
        [=, this](long i, long c) {
          const double d = static_cast<double>(x[i]) - static_cast<double>(guess[c]);
          sum[c] += d;
          square[c] += d * d;
        });
  }
  /// From sums about the guess to sums about zero.
  void finish() {
    const double n = static_cast<double>(rows);
    for (long c = 0; c < width; ++c) {
      const double g = static_cast<double>(guess[c]);
      square[c] += g * (2 * sum[c] + n * g);
      sum[c] += n * g;
    }
  }
};

/// Sums of dy and dy (x - mean) over the rows, per column, in double. Coefficients of columns are repeated to column_period.
template <class Scalar>
void column_products(const Columns<Scalar>& m, const Scalar* dy, const Scalar* mean, double* sum, double* product) {
  using V = xsimd::batch<Scalar>;
  for (long c = 0; c < m.width; ++c) sum[c] = product[c] = 0;
  const Scalar* x = m.x;
  detail::column_sums<Scalar>(
      m.rows, m.width, sum, product,
      [=](long i, long j, V& first, V& second) {
        const V g = V::load_unaligned(dy + i);
        first += g;
        second = fused(g, V::load_unaligned(x + i) - V::load_unaligned(mean + j), second);
      },
      [=](long i, long c) {
        sum[c] += static_cast<double>(dy[i]);
        product[c] += static_cast<double>(dy[i]) * (static_cast<double>(x[i]) - static_cast<double>(mean[c]));
      });
}

/// y = (x - mean) scale + shift.
template <class Scalar>
void column_affine(const Columns<Scalar>& m, const Scalar* mean, const Scalar* scale, const Scalar* shift, Scalar* y) {
  using V = xsimd::batch<Scalar>;
  const Scalar* x = m.x;
  detail::column_map<Scalar>(
      m.rows, m.width,
      [=](long i, long j) {
        const V d = V::load_unaligned(x + i) - V::load_unaligned(mean + j);
        fused(d, V::load_unaligned(scale + j), V::load_unaligned(shift + j)).store_unaligned(y + i);
      },
      [=](long i, long c) { y[i] = (x[i] - mean[c]) * scale[c] + shift[c]; });
}

/// dx = a dy + b (x - mean) + constant.
template <class Scalar> void column_combine(const Columns<Scalar>& m, const Scalar* dy, const Scalar* mean, const Scalar* a,
                                            const Scalar* b, const Scalar* constant, Scalar* dx) {
  using V = xsimd::batch<Scalar>;
  const Scalar* x = m.x;
  detail::column_map<Scalar>(
      m.rows, m.width,
      [=](long i, long j) {
        const V d = V::load_unaligned(x + i) - V::load_unaligned(mean + j);
        const V rest = fused(V::load_unaligned(b + j), d, V::load_unaligned(constant + j));
        fused(V::load_unaligned(a + j), V::load_unaligned(dy + i), rest).store_unaligned(dx + i);
      },
      [=](long i, long c) { dx[i] = a[c] * dy[i] + b[c] * (x[i] - mean[c]) + constant[c]; });
}

}  // namespace skein::inline SKEIN_ABI::ops::cpu

#else

namespace skein::inline SKEIN_ABI::ops::cpu {
using reference::column_affine;
using reference::column_combine;
using reference::column_products;
template <class Scalar> struct MomentsOfColumns {
  double *sum, *square;
  Scalar* guess;
  long width;

  void begin(const Columns<Scalar>&) {
    for (long c = 0; c < width; ++c) sum[c] = square[c] = 0;
  }
  void add(const Columns<Scalar>& part) { reference::add_moments(part, sum, square); }
  void finish() {}
};
}  // namespace skein::inline SKEIN_ABI::ops::cpu

#endif

namespace skein::inline SKEIN_ABI::ops::cpu {
/// Sums of x and x^2 over the rows of one matrix. guess: see MomentsOfColumns.
template <class Scalar> void column_moments(const Columns<Scalar>& m, double* sum, double* square, Scalar* guess) {
  MomentsOfColumns<Scalar> moments{sum, square, guess, m.width};
  moments.begin(m);
  moments.add(m);
  moments.finish();
}
}  // namespace skein::inline SKEIN_ABI::ops::cpu
