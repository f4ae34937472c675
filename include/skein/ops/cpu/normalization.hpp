// SPDX-License-Identifier: Apache-2.0
// Normalisation in vectors. Columns: the matrix is read as one array whose coefficients repeat after column_period, so that 6
// channels fill vectors as well as 64 do; sums are taken in registers over blocks of rows, about a first guess of the mean,
// and added up in double. Rows: three short passes over a row in the first-level cache. Without xsimd it is the reference.
#pragma once
#include "../reference/normalization.hpp"

#if SKEIN_WITH_XSIMD
#include <algorithm>

#include "vector_part.hpp"

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

/// Sums of x and x^2 over the rows, per column, in double. guess: column_period(width) scalars of scratch.
template <class Scalar> void column_moments(const Columns<Scalar>& m, double* sum, double* square, Scalar* guess) {
  using V = xsimd::batch<Scalar>;
  const long period = column_period(m.width), sample = std::min(m.rows, 8L);
  for (long c = 0; c < m.width; ++c) {
    double mean = 0;
    for (long r = 0; r < sample; ++r) mean += static_cast<double>(m.x[r * m.width + c]);
    guess[c] = sample > 0 ? static_cast<Scalar>(mean / static_cast<double>(sample)) : Scalar(0);
    sum[c] = square[c] = 0;
  }
  for (long i = m.width; i < period; ++i) guess[i] = guess[i - m.width];
  const Scalar* x = m.x;
  detail::column_sums<Scalar>(
      m.rows, m.width, sum, square,
      [=](long i, long j, V& first, V& second) {
        const V d = V::load_unaligned(x + i) - V::load_unaligned(guess + j);
        first += d;
        second = xsimd::fma(d, d, second);
      },
      [=](long i, long c) {
        const double d = static_cast<double>(x[i]) - static_cast<double>(guess[c]);
        sum[c] += d;
        square[c] += d * d;
      });
  const double n = static_cast<double>(m.rows);
  for (long c = 0; c < m.width; ++c) {  // from sums about the guess to sums about zero
    const double g = static_cast<double>(guess[c]);
    square[c] += g * (2 * sum[c] + n * g);
    sum[c] += n * g;
  }
}

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
        second = xsimd::fma(g, V::load_unaligned(x + i) - V::load_unaligned(mean + j), second);
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
        xsimd::fma(d, V::load_unaligned(scale + j), V::load_unaligned(shift + j)).store_unaligned(y + i);
      },
      [=](long i, long c) { y[i] = (x[i] - mean[c]) * scale[c] + shift[c]; });
}

/// dx = a dy + b (x - mean) + c.
template <class Scalar> void column_combine(const Columns<Scalar>& m, const Scalar* dy, const Scalar* mean, const Scalar* a,
                                            const Scalar* b, const Scalar* c, Scalar* dx) {
  using V = xsimd::batch<Scalar>;
  const Scalar* x = m.x;
  detail::column_map<Scalar>(
      m.rows, m.width,
      [=](long i, long j) {
        const V d = V::load_unaligned(x + i) - V::load_unaligned(mean + j);
        const V constant = xsimd::fma(V::load_unaligned(b + j), d, V::load_unaligned(c + j));
        xsimd::fma(V::load_unaligned(a + j), V::load_unaligned(dy + i), constant).store_unaligned(dx + i);
      },
      [=](long i, long k) { dx[i] = a[k] * dy[i] + b[k] * (x[i] - mean[k]) + c[k]; });
}

namespace detail {
template <class Scalar> SKEIN_ALWAYS_INLINE Scalar row_sum(const Scalar* row, long n) {
  using V = xsimd::batch<Scalar>;
  V total(Scalar(0));
  each_vector_of<Scalar>(
      n, [&](long c) { total += V::load_unaligned(row + c); },
      [&](long c, long left) { total += load_part<Scalar>(row + c, left, Scalar(0)); });
  return xsimd::hadd(total);
}
}  // namespace detail

/// As reference::row_normalize, in vectors.
template <Center C = Center::mean, class Scalar> void row_normalize(const RowShape& s, const Scalar* x, const Scalar* weight,
                                                                    const Scalar* bias, double epsilon, Scalar* y,
                                                                    Scalar* saved_for_backward) {
  using V = xsimd::batch<Scalar>;
  using detail::each_vector_of, detail::load_ones, detail::load_part, detail::store_part;
  constexpr bool centers = C == Center::mean;
  const Scalar one_of_n = Scalar(1) / static_cast<Scalar>(s.n);
  for (long r = 0; r < s.rows; ++r) {
    const Scalar* in = x + r * s.pitch;
    Scalar* out = y + r * s.pitch;
    const Scalar mean = centers ? detail::row_sum(in, s.n) * one_of_n : Scalar(0);
    V squares(Scalar(0));
    each_vector_of<Scalar>(
        s.n,
        [&](long c) {
          const V d = V::load_unaligned(in + c) - V(mean);
          squares = xsimd::fma(d, d, squares);
        },
        [&](long c, long left) {
          const V d = load_part<Scalar>(in + c, left, mean) - V(mean);
          squares = xsimd::fma(d, d, squares);
        });
    const Scalar inverse = static_cast<Scalar>(1 / std::sqrt(static_cast<double>(xsimd::hadd(squares) * one_of_n) + epsilon));
    each_vector_of<Scalar>(
        s.n,
        [&](long c) {
          const V hat = (V::load_unaligned(in + c) - V(mean)) * V(inverse), w = V::load_unaligned(weight + c);
          if constexpr (centers) xsimd::fma(hat, w, V::load_unaligned(bias + c)).store_unaligned(out + c);
          else (hat * w).store_unaligned(out + c);
        },
        [&](long c, long left) {
          for (long k = c; k < c + left; ++k) out[k] = (in[k] - mean) * inverse * weight[k] + (centers ? bias[k] : Scalar(0));
        });
    for (long c = s.n; c < s.pitch; ++c) out[c] = 0;
    Scalar* const kept = saved_for_backward + row_statistics<C> * r;
    kept[0] = mean;
    kept[row_statistics<C> - 1] = inverse;
  }
}

/// The gradients of weight and bias are gathered over 64 rows before they are added, so that long sums keep their digits.
/// scratch: 2 s.n scalars.
template <Center C = Center::mean, class Scalar>
void row_normalize_backward(const RowShape& s, const Scalar* x, const Scalar* dy, const Scalar* weight,
                            const Scalar* saved_for_backward, Scalar* dx, Scalar* dweight, Scalar* dbias, Scalar* scratch) {
  using V = xsimd::batch<Scalar>;
  constexpr long lanes = static_cast<long>(V::size);
  constexpr bool centers = C == Center::mean;
  Scalar* weights = scratch;
  Scalar* biases = scratch + s.n;
  const Scalar one_of_n = Scalar(1) / static_cast<Scalar>(s.n);
  for (long begin = 0; begin < s.rows; begin += 64) {
    for (long c = 0; c < s.n; ++c) weights[c] = biases[c] = 0;
    for (long r = begin; r < std::min(begin + 64, s.rows); ++r) {
      const Scalar* in = x + r * s.pitch;
      const Scalar* g = dy + r * s.pitch;
      const Scalar* const kept = saved_for_backward + row_statistics<C> * r;
      const Scalar mean = centers ? kept[0] : Scalar(0), inverse = kept[row_statistics<C> - 1];
      V sums(Scalar(0)), products(Scalar(0));
      long c = 0;
      for (; c + lanes <= s.n; c += lanes) {
        const V slope = V::load_unaligned(g + c), hat = (V::load_unaligned(in + c) - V(mean)) * V(inverse);
        const V scaled = slope * V::load_unaligned(weight + c);
        xsimd::fma(slope, hat, V::load_unaligned(weights + c)).store_unaligned(weights + c);
        if constexpr (centers) {
          (slope + V::load_unaligned(biases + c)).store_unaligned(biases + c);
          sums += scaled;
        }
        products = xsimd::fma(scaled, hat, products);
      }
      Scalar sum = xsimd::hadd(sums), product = xsimd::hadd(products);
      for (; c < s.n; ++c) {
        const Scalar hat = (in[c] - mean) * inverse;
        weights[c] += g[c] * hat;
        biases[c] += g[c];
        sum += centers ? g[c] * weight[c] : Scalar(0);
        product += g[c] * weight[c] * hat;
      }
      if (!dx) continue;
      const Scalar average = sum * one_of_n, along = product * one_of_n;
      Scalar* out = dx + r * s.pitch;
      for (c = 0; c + lanes <= s.n; c += lanes) {
        const V hat = (V::load_unaligned(in + c) - V(mean)) * V(inverse),
                scaled = V::load_unaligned(g + c) * V::load_unaligned(weight + c);
        (V(inverse) * (scaled - V(average) - hat * V(along))).store_unaligned(out + c);
      }
      for (; c < s.n; ++c) out[c] = inverse * (g[c] * weight[c] - average - (in[c] - mean) * inverse * along);
      for (; c < s.pitch; ++c) out[c] = 0;
    }
    for (long c = 0; c < s.n; ++c) {
      dweight[c] += weights[c];
      if constexpr (centers) dbias[c] += biases[c];
    }
  }
}

}  // namespace skein::inline SKEIN_ABI::ops::cpu

#else

namespace skein::inline SKEIN_ABI::ops::cpu {
using reference::column_affine;
using reference::column_combine;
using reference::column_products;
using reference::row_normalize;
template <class Scalar> void column_moments(const Columns<Scalar>& m, double* sum, double* square, Scalar*) {
  reference::column_moments(m, sum, square);
}
template <Center C = Center::mean, class Scalar>
void row_normalize_backward(const RowShape& s, const Scalar* x, const Scalar* dy, const Scalar* weight,
                            const Scalar* saved_for_backward, Scalar* dx, Scalar* dweight, Scalar* dbias, Scalar*) {
  reference::row_normalize_backward<C>(s, x, dy, weight, saved_for_backward, dx, dweight, dbias);
}
}  // namespace skein::inline SKEIN_ABI::ops::cpu

#endif
