// SPDX-License-Identifier: Apache-2.0
// Normalised columns with a ReLU behind them, or a sum and a ReLU, as plain loops: the oracle of the tests, and what runs without
// xsimd.
//
//     m the matrix x (rows, width); y, dx, dy likewise; i an element of the array, c its column; k coefficients, g an element of
//     the gradient in front of the ReLU
#pragma once
#include "normalization.hpp"

namespace skein::inline SKEIN_ABI::ops {

/// Coefficients of (x - mean) scale + shift, each of column_period(width) scalars.
template <class Scalar> struct ColumnAffine { const Scalar *mean = nullptr, *scale = nullptr, *shift = nullptr; };

/// Coefficients of a dy + b (x - mean) + constant, likewise.
template <class Scalar> struct ColumnCombine { const Scalar *mean = nullptr, *a = nullptr, *b = nullptr, *constant = nullptr; };

namespace reference {
/// y = max(0, (x - mean) scale + shift), where there is an addend max(0, (x - mean) scale + shift + addend). NaN stays.
template <class Scalar>
void rectified_affine(const Columns<Scalar>& m, const ColumnAffine<Scalar>& k, const Scalar* addend, Scalar* y) {
  for (long i = 0; i < m.rows * m.width; ++i) {
    const long c = i % m.width;
    const Scalar value = (m.x[i] - k.mean[c]) * k.scale[c] + k.shift[c] + (addend ? addend[i] : Scalar(0));
    y[i] = value < 0 ? Scalar(0) : value;
  }
}

/// sum[c] = sum of g, product[c] = sum of g (x - mean), where g is dy where (x - mean) scale + shift > 0, else 0.
template <class Scalar>
void rectified_products(const Columns<Scalar>& m, const ColumnAffine<Scalar>& k, const Scalar* dy, double* sum, double* product) {
  for (long c = 0; c < m.width; ++c) sum[c] = product[c] = 0;
  for (long i = 0; i < m.rows * m.width; ++i) {
    const long c = i % m.width;
    if (!((m.x[i] - k.mean[c]) * k.scale[c] + k.shift[c] > 0)) continue;
    sum[c] += static_cast<double>(dy[i]);
    product[c] += static_cast<double>(dy[i]) * (static_cast<double>(m.x[i]) - static_cast<double>(k.mean[c]));
  }
}

/// Writes g = dy where y > 0, else 0, and sums it as rectified_products() does. g and dy may be one array.
template <class Scalar> void masked_products(const Columns<Scalar>& m, const Scalar* mean, const Scalar* dy, const Scalar* y,
                                             Scalar* g, double* sum, double* product) {
  for (long i = 0; i < m.rows * m.width; ++i) g[i] = y[i] > 0 ? dy[i] : Scalar(0);
  column_products(m, g, mean, sum, product);
}

/// dx = a g + b (x - mean) + constant, g as in rectified_products.
template <class Scalar> void rectified_combine(const Columns<Scalar>& m, const ColumnAffine<Scalar>& k, const Scalar* dy,
                                               const ColumnCombine<Scalar>& to, Scalar* dx) {
  for (long i = 0; i < m.rows * m.width; ++i) {
    const long c = i % m.width;
    const Scalar d = m.x[i] - k.mean[c], g = d * k.scale[c] + k.shift[c] > 0 ? dy[i] : Scalar(0);
    dx[i] = to.a[c] * g + to.b[c] * d + to.constant[c];
  }
}
}  // namespace reference

}  // namespace skein::inline SKEIN_ABI::ops
