// SPDX-License-Identifier: Apache-2.0
// Normalisation as plain loops: the oracle of the tests, and what runs without xsimd. Two views of a batch: columns (a channel
// each, over all rows: batch normalisation) and rows (layer normalisation; with a shape of groups, group normalisation).
//
//     m a matrix (rows, width), s a shape: rows of n values; x, y, dx, dy of that shape; r a row, c a column or a value of a row;
//     g an element of dy, C what is taken away
#pragma once
#include <cmath>

#include "../../core/config.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// The length to which per-column coefficients are repeated: whole rows and whole vectors of any width up to 16. Arrays of
/// coefficients below have this length.
constexpr long column_period(long width) {
  long rows = 1;
  while (width * rows % 16 != 0) rows *= 2;
  return width * rows;
}

/// A dense matrix (rows, width), channels last. Rows of flat samples are padded: their gaps are columns like others.
template <class Scalar> struct Columns {
  const Scalar* x = nullptr;
  long rows = 0, width = 0;
};

/// Rows of n values, `pitch` apart; gaps are zero and stay zero. The functions are what passes over rows ask of any shape.
struct RowShape {
  long rows = 0, n = 0, pitch = 0;

  constexpr long stored() const { return pitch; }                            ///< values that a pass writes in a row
  constexpr long at(long row, long c) const { return row * pitch + c; }      ///< where value c of a row lies
  constexpr long column(long, long c) const { return c; }                    ///< which weight it has
  constexpr RowShape matrix() const { return *this; }                        ///< the same values, a column for each weight
  constexpr long row_of(long matrix_row, long) const { return matrix_row; }  ///< the row of a value of the matrix
};

/// Dense images of `pixels` times `channels` values, `pitch` apart; a row is what a group of channels has in one image.
struct GroupShape {
  long rows = 0, n = 0, pitch = 0;  ///< samples * groups; values of a row; from sample to sample
  long channels = 0, groups = 1;

  constexpr GroupShape(long samples, long pixels, long all_channels, long of_groups, long sample_pitch)
      : rows(samples * of_groups), n(pixels * all_channels / of_groups), pitch(sample_pitch), channels(all_channels),
        groups(of_groups) {}
  constexpr long width() const { return channels / groups; }  ///< channels of a group
  constexpr long pixels() const { return n / width(); }
  constexpr long samples() const { return rows / groups; }
  constexpr long stored() const { return n; }
  constexpr long at(long row, long c) const { return row / groups * pitch + c / width() * channels + column(row, c); }
  constexpr long column(long row, long c) const { return row % groups * width() + c % width(); }
  constexpr RowShape matrix() const { return {samples() * pixels(), channels, pixels() == 1 ? pitch : channels}; }
  constexpr long row_of(long matrix_row, long c) const { return matrix_row / pixels() * groups + c / width(); }
};

/// What is taken from a row before it is scaled: its mean (layer and group normalisation), or nothing (by the root mean square).
enum class Center { mean, nothing };

/// Scalars that forward keeps of a row: the mean, where it is taken away, and 1 / deviation.
template <Center C> inline constexpr long row_statistics = C == Center::mean ? 2 : 1;

namespace reference {
/// Adds x to sum[c] and x^2 to square[c], over the rows.
template <class Scalar> void add_moments(const Columns<Scalar>& m, double* sum, double* square) {
  for (long r = 0; r < m.rows; ++r)
    for (long c = 0; c < m.width; ++c) {
      const double v = static_cast<double>(m.x[r * m.width + c]);
      sum[c] += v;
      square[c] += v * v;
    }
}
/// sum[c] = sum of x, square[c] = sum of x^2 over the rows.
template <class Scalar> void column_moments(const Columns<Scalar>& m, double* sum, double* square) {
  for (long c = 0; c < m.width; ++c) sum[c] = square[c] = 0;
  add_moments(m, sum, square);
}

/// sum[c] = sum of dy, product[c] = sum of dy (x - mean).
template <class Scalar>
void column_products(const Columns<Scalar>& m, const Scalar* dy, const Scalar* mean, double* sum, double* product) {
  for (long c = 0; c < m.width; ++c) sum[c] = product[c] = 0;
  for (long r = 0; r < m.rows; ++r)
    for (long c = 0; c < m.width; ++c) {
      const double g = static_cast<double>(dy[r * m.width + c]);
      sum[c] += g;
      product[c] += g * (static_cast<double>(m.x[r * m.width + c]) - static_cast<double>(mean[c]));
    }
}

/// y = (x - mean) scale + shift.
template <class Scalar>
void column_affine(const Columns<Scalar>& m, const Scalar* mean, const Scalar* scale, const Scalar* shift, Scalar* y) {
  for (long r = 0; r < m.rows; ++r)
    for (long c = 0; c < m.width; ++c) y[r * m.width + c] = (m.x[r * m.width + c] - mean[c]) * scale[c] + shift[c];
}

/// dx = a dy + b (x - mean) + constant.
template <class Scalar> void column_combine(const Columns<Scalar>& m, const Scalar* dy, const Scalar* mean, const Scalar* a,
                                            const Scalar* b, const Scalar* constant, Scalar* dx) {
  for (long r = 0; r < m.rows; ++r)
    for (long c = 0; c < m.width; ++c)
      dx[r * m.width + c] = a[c] * dy[r * m.width + c] + b[c] * (m.x[r * m.width + c] - mean[c]) + constant[c];
}

/// y = (x - mean) / sqrt(variance + epsilon) weight + bias, each row by itself; saved: (rows, 2), mean and 1 / deviation. Without
/// a center y = x / sqrt(mean of x^2 + epsilon) weight, and saved is (rows, 1).
template <Center C = Center::mean, class Shape, class Scalar>
void row_normalize(const Shape& s, const Scalar* x, const Scalar* weight, const Scalar* bias, double epsilon, Scalar* y,
                   Scalar* saved_for_backward) {
  constexpr long kept = row_statistics<C>;
  for (long r = 0; r < s.rows; ++r) {
    double mean = 0, variance = 0;
    for (long c = 0; C == Center::mean && c < s.n; ++c) mean += static_cast<double>(x[s.at(r, c)]);
    mean /= static_cast<double>(s.n);
    for (long c = 0; c < s.n; ++c) {
      const double d = static_cast<double>(x[s.at(r, c)]) - mean;
      variance += d * d;
    }
    const double inverse = 1 / std::sqrt(variance / static_cast<double>(s.n) + epsilon);
    for (long c = 0; c < s.n; ++c) {
      const long i = s.at(r, c), k = s.column(r, c);
      y[i] = static_cast<Scalar>((static_cast<double>(x[i]) - mean) * inverse) * weight[k] + (bias ? bias[k] : Scalar(0));
    }
    for (long c = s.n; c < s.stored(); ++c) y[s.at(r, c)] = 0;
    if constexpr (C == Center::mean) saved_for_backward[kept * r] = static_cast<Scalar>(mean);
    saved_for_backward[kept * r + kept - 1] = static_cast<Scalar>(inverse);
  }
}

/// Adds to dweight and dbias, and writes dx where it is not null.
template <Center C = Center::mean, class Shape, class Scalar>
void row_normalize_backward(const Shape& s, const Scalar* x, const Scalar* dy, const Scalar* weight,
                            const Scalar* saved_for_backward, Scalar* dx, Scalar* dweight, Scalar* dbias) {
  constexpr long kept = row_statistics<C>;
  for (long r = 0; r < s.rows; ++r) {
    const Scalar mean = C == Center::mean ? saved_for_backward[kept * r] : Scalar(0),
                 inverse = saved_for_backward[kept * r + kept - 1];
    double sum = 0, product = 0;
    for (long c = 0; c < s.n; ++c) {
      const long i = s.at(r, c), k = s.column(r, c);
      const Scalar hat = (x[i] - mean) * inverse;
      dweight[k] += dy[i] * hat;
      if constexpr (C == Center::mean) {
        dbias[k] += dy[i];
        sum += static_cast<double>(dy[i] * weight[k]);
      }
      product += static_cast<double>(dy[i] * weight[k] * hat);
    }
    if (!dx) continue;
    const Scalar average = static_cast<Scalar>(sum / static_cast<double>(s.n)),
                 along = static_cast<Scalar>(product / static_cast<double>(s.n));
    for (long c = 0; c < s.n; ++c) {
      const long i = s.at(r, c);
      dx[i] = inverse * (dy[i] * weight[s.column(r, c)] - average - (x[i] - mean) * inverse * along);
    }
    for (long c = s.n; c < s.stored(); ++c) dx[s.at(r, c)] = 0;
  }
}
}  // namespace reference

}  // namespace skein::inline SKEIN_ABI::ops
