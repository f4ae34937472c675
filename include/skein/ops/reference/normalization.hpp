// SPDX-License-Identifier: Apache-2.0
// Normalisation as plain loops: the oracle of the tests, and what runs without xsimd. Two views of a batch: columns (a channel
// each, over all rows: batch normalisation) and rows (layer normalisation).
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

/// Rows of n values, `pitch` apart; gaps are zero and stay zero.
struct RowShape {
  long rows = 0, n = 0, pitch = 0;
};

namespace reference {
/// sum[c] = sum of x, square[c] = sum of x^2 over the rows.
template <class Scalar> void column_moments(const Columns<Scalar>& m, double* sum, double* square) {
  for (long c = 0; c < m.width; ++c) sum[c] = square[c] = 0;
  for (long r = 0; r < m.rows; ++r)
    for (long c = 0; c < m.width; ++c) {
      const double v = static_cast<double>(m.x[r * m.width + c]);
      sum[c] += v;
      square[c] += v * v;
    }
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

/// dx = a dy + b (x - mean) + c.
template <class Scalar> void column_combine(const Columns<Scalar>& m, const Scalar* dy, const Scalar* mean, const Scalar* a,
                                            const Scalar* b, const Scalar* c, Scalar* dx) {
  for (long r = 0; r < m.rows; ++r)
    for (long j = 0; j < m.width; ++j)
      dx[r * m.width + j] = a[j] * dy[r * m.width + j] + b[j] * (m.x[r * m.width + j] - mean[j]) + c[j];
}

/// y = (x - mean) / sqrt(variance + epsilon) weight + bias, each row by itself; saved: (rows, 2), mean and 1 / deviation.
template <class Scalar> void row_normalize(const RowShape& s, const Scalar* x, const Scalar* weight, const Scalar* bias,
                                           double epsilon, Scalar* y, Scalar* saved_for_backward) {
  for (long r = 0; r < s.rows; ++r) {
    const Scalar* in = x + r * s.pitch;
    Scalar* out = y + r * s.pitch;
    double mean = 0, variance = 0;
    for (long c = 0; c < s.n; ++c) mean += static_cast<double>(in[c]);
    mean /= static_cast<double>(s.n);
    for (long c = 0; c < s.n; ++c) variance += (static_cast<double>(in[c]) - mean) * (static_cast<double>(in[c]) - mean);
    const double inverse = 1 / std::sqrt(variance / static_cast<double>(s.n) + epsilon);
    for (long c = 0; c < s.n; ++c)
      out[c] = static_cast<Scalar>((static_cast<double>(in[c]) - mean) * inverse) * weight[c] + bias[c];
    for (long c = s.n; c < s.pitch; ++c) out[c] = 0;
    saved_for_backward[2 * r] = static_cast<Scalar>(mean);
    saved_for_backward[2 * r + 1] = static_cast<Scalar>(inverse);
  }
}

/// Adds to dweight and dbias, and writes dx where it is not null.
template <class Scalar> void row_normalize_backward(const RowShape& s, const Scalar* x, const Scalar* dy, const Scalar* weight,
                                                    const Scalar* saved_for_backward, Scalar* dx, Scalar* dweight,
                                                    Scalar* dbias) {
  for (long r = 0; r < s.rows; ++r) {
    const Scalar* in = x + r * s.pitch;
    const Scalar* g = dy + r * s.pitch;
    const Scalar mean = saved_for_backward[2 * r], inverse = saved_for_backward[2 * r + 1];
    double sum = 0, product = 0;
    for (long c = 0; c < s.n; ++c) {
      const Scalar hat = (in[c] - mean) * inverse;
      dweight[c] += g[c] * hat;
      dbias[c] += g[c];
      sum += static_cast<double>(g[c] * weight[c]);
      product += static_cast<double>(g[c] * weight[c] * hat);
    }
    if (!dx) continue;
    const Scalar average = static_cast<Scalar>(sum / static_cast<double>(s.n)),
                 along = static_cast<Scalar>(product / static_cast<double>(s.n));
    for (long c = 0; c < s.n; ++c)
      dx[r * s.pitch + c] = inverse * (g[c] * weight[c] - average - (in[c] - mean) * inverse * along);
    for (long c = s.n; c < s.pitch; ++c) dx[r * s.pitch + c] = 0;
  }
}
}  // namespace reference

}  // namespace skein::inline SKEIN_ABI::ops
