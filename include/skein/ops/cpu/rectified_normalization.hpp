// SPDX-License-Identifier: Apache-2.0
// Normalised columns with a ReLU behind them, or a sum and a ReLU, in one pass of vectors: see normalize_columns.hpp. What passed
// a ReLU is found again from x, with forward's coefficients, so that backward need not read the output. Without xsimd it is the
// reference.
//
//     m the matrix x (rows, width); y, dx, dy likewise; i an element of the array, j its place in the period, c its column; k
//     coefficients, g an element of the gradient in front of the ReLU; V a vector of Scalar
#pragma once
#include "../reference/rectified_normalization.hpp"
#include "normalize_columns.hpp"

namespace skein::inline SKEIN_ABI::ops::cpu {

#if SKEIN_WITH_XSIMD
namespace detail {
/// (x - mean) scale + shift of a vector of the array, with the same rounding wherever it is made.
template <class Scalar> SKEIN_ALWAYS_INLINE auto affine_at(const Scalar* x, const ColumnAffine<Scalar>& k, long i, long j) {
  using V = xsimd::batch<Scalar>;
  const V d = V::load_unaligned(x + i) - V::load_unaligned(k.mean + j);
  return fused(d, V::load_unaligned(k.scale + j), V::load_unaligned(k.shift + j));
}
template <class Scalar> Scalar affine_of(const Scalar* x, const ColumnAffine<Scalar>& k, long i, long c) {
  return std::fma(x[i] - k.mean[c], k.scale[c], k.shift[c]);
}
}  // namespace detail

/// y = max(0, (x - mean) scale + shift), where there is an addend max(0, (x - mean) scale + shift + addend). NaN stays.
template <class Scalar>
void rectified_affine(const Columns<Scalar>& m, const ColumnAffine<Scalar>& k, const Scalar* addend, Scalar* y) {
  using V = xsimd::batch<Scalar>;
  const Scalar* x = m.x;
  const V zero(Scalar(0));
  const auto rest = [=](long i, long c) {
    const Scalar value = detail::affine_of(x, k, i, c) + (addend ? addend[i] : Scalar(0));
    y[i] = value < 0 ? Scalar(0) : value;
  };
  if (addend)
    detail::column_map<Scalar>(
        m.rows, m.width,
        [=](long i, long j) {
          xsimd::max(zero, detail::affine_at(x, k, i, j) + V::load_unaligned(addend + i)).store_unaligned(y + i);
        },
        rest);
  else
    detail::column_map<Scalar>(
        m.rows, m.width, [=](long i, long j) { xsimd::max(zero, detail::affine_at(x, k, i, j)).store_unaligned(y + i); }, rest);
}

/// Sums of g and g (x - mean) over the rows, where g is dy where (x - mean) scale + shift > 0, else 0.
template <class Scalar>
void rectified_products(const Columns<Scalar>& m, const ColumnAffine<Scalar>& k, const Scalar* dy, double* sum, double* product) {
  using V = xsimd::batch<Scalar>;
  for (long c = 0; c < m.width; ++c) sum[c] = product[c] = 0;
  const Scalar* x = m.x;
  const V zero(Scalar(0));
  detail::column_sums<Scalar>(
      m.rows, m.width, sum, product,
      [=](long i, long j, V& first, V& second) {
        const V g = xsimd::select(detail::affine_at(x, k, i, j) > zero, V::load_unaligned(dy + i), zero);
        first += g;
        second = fused(g, V::load_unaligned(x + i) - V::load_unaligned(k.mean + j), second);
      },
      [=](long i, long c) {
        if (!(detail::affine_of(x, k, i, c) > 0)) return;
        sum[c] += static_cast<double>(dy[i]);
        product[c] += static_cast<double>(dy[i]) * (static_cast<double>(x[i]) - static_cast<double>(k.mean[c]));
      });
}

/// Writes g = dy where y > 0, else 0, and sums it as rectified_products() does. g and dy may be one array.
template <class Scalar> void masked_products(const Columns<Scalar>& m, const Scalar* mean, const Scalar* dy, const Scalar* y,
                                             Scalar* g, double* sum, double* product) {
  using V = xsimd::batch<Scalar>;
  for (long c = 0; c < m.width; ++c) sum[c] = product[c] = 0;
  const Scalar* x = m.x;
  const V zero(Scalar(0));
  detail::column_sums<Scalar>(
      m.rows, m.width, sum, product,
      [=](long i, long j, V& first, V& second) {
        const V v = xsimd::select(V::load_unaligned(y + i) > zero, V::load_unaligned(dy + i), zero);
        v.store_unaligned(g + i);
        first += v;
        second = fused(v, V::load_unaligned(x + i) - V::load_unaligned(mean + j), second);
      },
      [=](long i, long c) {
        g[i] = y[i] > 0 ? dy[i] : Scalar(0);
        sum[c] += static_cast<double>(g[i]);
        product[c] += static_cast<double>(g[i]) * (static_cast<double>(x[i]) - static_cast<double>(mean[c]));
      });
}

/// dx = a g + b (x - mean) + constant, g as in rectified_products.
template <class Scalar> void rectified_combine(const Columns<Scalar>& m, const ColumnAffine<Scalar>& k, const Scalar* dy,
                                               const ColumnCombine<Scalar>& to, Scalar* dx) {
  using V = xsimd::batch<Scalar>;
  const Scalar* x = m.x;
  const V zero(Scalar(0));
  detail::column_map<Scalar>(
      m.rows, m.width,
      [=](long i, long j) {
        const V d = V::load_unaligned(x + i) - V::load_unaligned(k.mean + j);
        const V g = xsimd::select(detail::affine_at(x, k, i, j) > zero, V::load_unaligned(dy + i), zero);
        const V constant = fused(V::load_unaligned(to.b + j), d, V::load_unaligned(to.constant + j));
        fused(V::load_unaligned(to.a + j), g, constant).store_unaligned(dx + i);
      },
      [=](long i, long c) {
        const Scalar g = detail::affine_of(x, k, i, c) > 0 ? dy[i] : Scalar(0);
        dx[i] = to.a[c] * g + to.b[c] * (x[i] - k.mean[c]) + to.constant[c];
      });
}
#else
using reference::masked_products;
using reference::rectified_affine;
using reference::rectified_combine;
using reference::rectified_products;
#endif

}  // namespace skein::inline SKEIN_ABI::ops::cpu
